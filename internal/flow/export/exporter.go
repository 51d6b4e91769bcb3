package export

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"heddle/internal/flow"
	"heddle/internal/flow/ipfix"
	"heddle/internal/flow/meter"
)

// Exporter sends the records of one switch to its collectors. It is a meter.Exporter. One goroutine calls it; any
// goroutine may call Status.
type Exporter struct {
	c       Config
	options []*ipfix.Template
	cancel  context.CancelFunc
	ports   ports

	mu       sync.Mutex // held by every call
	sessions []*session
	state    meter.State
	ignored  ignored
	tokens   float64
	filled   time.Duration // when tokens were added, by meter.Instant.Up
}

var _ meter.Exporter = (*Exporter)(nil)

// New begins a session for each collector. It is no error if a collector can't be reached: see Status.
func New(now meter.Instant, c Config) (*Exporter, error) {
	c = c.withDefaults()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	options, err := optionsTemplates()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	x := &Exporter{c: c, options: options, cancel: cancel, ports: ports{ends: recentEnds{locator: c.Locator}},
		filled: now.Up, tokens: burst(c.Rate)}
	for i, to := range c.Collectors {
		shape, err := shapeOf(to.Shape)
		if err != nil {
			cancel()
			return nil, fmt.Errorf("collector %s: %w", to.Address, err)
		}
		s := &session{x: x, process: uint32(i + 1), shape: shape, names: newResolver(ctx, to.Address, c.Lookup),
			since: now.Up, hold: now.Up + patience}
		s.status = Status{Collector: to, State: Resolving, Since: now.Wall, Lost: c.Lost[to]}
		s.status.Counted, s.lostBefore = counted(c.Counted, to, now), s.status.Lost
		if to.streams() {
			err = s.openStream(ctx)
		} else {
			s.open(now)
		}
		if err != nil {
			cancel()
			return nil, fmt.Errorf("collector %s: %w", to.Address, err)
		}
		x.sessions = append(x.sessions, s)
	}
	return x, nil
}

// counted is since when the loss of a collector is counted: since now for a new one.
func counted(before map[Collector]Span, to Collector, now meter.Instant) Span {
	if span, known := before[to]; known {
		return span
	}
	return Span{Since: stamp(now)}
}

// stamp is a time in a form that can be stored and compared.
func stamp(now meter.Instant) time.Time { return now.Wall.Round(0).UTC() }

// losing notes whether something was lost since the previous call.
func (s *session) losing(now meter.Instant) {
	if s.sync(); s.status.Lost != s.lostBefore {
		s.status.Counted.Latest, s.lostBefore = stamp(now), s.status.Lost
	}
}

func shapeOf(s Shape) (shape, error) {
	switch s {
	case Standard, "":
		return newStandard()
	case VDS:
		return newVDS()
	}
	return nil, fmt.Errorf("there is no record shape %q", s)
}

// burst is how many records may be sent at once: those of 10 ms.
func burst(rate int) float64 { return max(256, float64(rate)/100) }

// Budget is how many records the rate allows now. It is 0 while it waits for a collector, for a few seconds at most.
func (x *Exporter) Budget(now meter.Instant) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.sessions {
		if s.status.State != Sending && now.Up < s.hold {
			return 0
		}
	}
	if len(x.sessions) == 0 {
		return 1 << 20
	}
	x.tokens = min(burst(x.c.Rate), x.tokens+(now.Up-x.filled).Seconds()*float64(x.c.Rate))
	x.filled = now.Up
	return max(0, int(x.tokens))
}

// Export sends records to every collector, or counts them as lost.
func (x *Exporter) Export(now meter.Instant, points flow.Points, records []flow.Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ports.follow(points)
	x.ports.ends.at(now)
	// Records that were not requested count as a debt, of half a second at most, so that requested records do not
	// starve.
	x.tokens = max(x.tokens-float64(len(records)), -float64(x.c.Rate)/2)
	for _, s := range x.sessions {
		s.export(now, records)
		s.losing(now)
	}
}

// Tick does the work that depends on time.
func (x *Exporter) Tick(now meter.Instant, state func() meter.State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	next := state()
	others, resampled := changed(x.state.Points, next.Points), next.Sampling != x.state.Sampling
	x.ignored.add(next.Losses)
	x.state = next
	for _, s := range x.sessions {
		if s.shape.options() {
			s.untold = append(s.untold, others...)
			s.fresh = s.fresh || resampled
		}
		s.tick(now)
		s.losing(now)
	}
}

// Status is the state of each collector's session, in the order of the configuration. Any goroutine may call it.
func (x *Exporter) Status() []Status {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := make([]Status, 0, len(x.sessions))
	for _, s := range x.sessions {
		s.sync()
		all = append(all, s.status)
	}
	return slices.Clip(all)
}

// Close sends the collectors a last report of what was lost, and ends the sessions.
func (x *Exporter) Close(now meter.Instant) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var ending sync.WaitGroup
	for _, s := range x.sessions {
		if s.sync(); (s.socket != nil || s.stream != nil) && s.status.State == Sending && s.shape.options() {
			s.sendOptions(now)
		}
		ending.Go(s.close)
	}
	ending.Wait()
	x.cancel()
}
