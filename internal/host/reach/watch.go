package reach

import "time"

// Times of the questions after a change.
const (
	// roundsAfter is how many rounds in a row must be answered, and pause is the time between them: one answer may have
	// been on its way when the change was made.
	roundsAfter = 2
	pause       = 300 * time.Millisecond
)

// Watch asks after a change those who answered before it, until the host is reached.
type Watch struct {
	net    Net
	asks   []Ask
	round  *Round
	rounds int
	next   time.Time // when the next round begins
}

// NewWatch begins with the first Look.
func NewWatch(net Net, asks []Ask) *Watch {
	return &Watch{net: net, asks: asks, round: NewRound(net, asks)}
}

// Look returns who has answered in the present round, and whether the host is reached.
func (w *Watch) Look(now time.Time) (asks []Ask, reached bool, err error) {
	if now.Before(w.next) {
		return w.round.Asks, false, nil
	}
	if err := w.round.Look(); err != nil {
		return w.round.Asks, false, err
	}
	if len(w.asks) == 0 || len(Missing(w.round.Asks)) > 0 {
		return w.round.Asks, false, nil
	}
	asks = w.round.Asks
	if w.rounds++; w.rounds >= roundsAfter {
		return asks, true, nil
	}
	w.round, w.next = NewRound(w.net, w.asks), now.Add(pause)
	return asks, false, nil
}
