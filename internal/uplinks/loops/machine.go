package loops

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"heddle/internal/plan"
)

// Times of a round of probes. Probes are sent three times, in case a storm swallows some; the probes that come back are
// evaluated a little later, so that both directions of a path have been heard.
const (
	roundLasts = 400 * time.Millisecond
	settleFor  = 10 * time.Millisecond
	// staleAfter is how long a path that a round found counts in later rounds.
	staleAfter = 3 * time.Second
	// yieldFor is how long this host waits for the other host of a loop to block its end.
	yieldFor = 300 * time.Millisecond
)

// resend returns when probes are sent again, counted from the beginning of a round.
func resend() []time.Duration { return []time.Duration{40 * time.Millisecond, 120 * time.Millisecond} }

// Bounds on the work that guests can cause.
const (
	mostSegments = 16   // probed in one round
	mostWays     = 256  // paths found by probes that are kept
	mostSigns    = 8192 // signs kept, so that the same sign is answered less and less often
	mostWaiting  = 1024 // segments
)

// After a sign that turned out to be no loop, the same sign is ignored for firstPause, then for twice as long each
// time; it is forgotten when it does not occur for forgetAfter.
const (
	firstPause  = time.Second
	longPause   = 5 * time.Minute
	forgetAfter = 10 * time.Minute
)

// A blocked port is tried again after FirstRetry, then after twice as long each time.
const (
	FirstRetry = 30 * time.Second
	LastRetry  = 8 * time.Minute
)

// Sign is a sign of a loop at a port.
type Sign struct {
	Port    plan.PortID
	Segment Segment
	Kind    uint32 // abi.SignOwned and so on; it includes the number of frames
}

// Block is a port that is blocked because of a loop.
type Block struct {
	Port plan.PortID `json:"port"`
	// Why describes the path of the loop, for people.
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
	// Seen: the devices show the loop, and it ends when they no longer do. Otherwise the port is tried at Retry, by
	// probes in Segments.
	Seen     bool          `json:"seen,omitzero"`
	Segments []Segment     `json:"segments,omitzero"`
	Retry    time.Time     `json:"retry,omitzero"`
	Pause    time.Duration `json:"pause,omitzero"`
}

// Change is a port that is blocked from now on, or no longer.
type Change struct {
	Block
	Lifted bool
}

// Send asks for probes of a round out of every port and uplink of the segments.
type Send struct {
	Round    uint64
	Segments []Segment
}

// Machine decides when probes are sent and which ports are blocked. It is for one goroutine. After each call of another
// method the caller calls Due and does what it returns, and calls Due again at the time of Next.
type Machine struct {
	signs   map[Sign]*answered
	waiting []Segment // to be probed in the next round
	round   round
	number  uint64 // of the last round
	ways    map[Way]time.Time
	seen    []Way
	blocks  map[plan.PortID]*Block
	lifted  map[plan.PortID]lifted
	others  map[plan.PortID]time.Time // when a probe came in there from a host that blocks its end before this one
	yields  map[plan.PortID]yield
	changes []Change
	send    []Send
}

// answered counts how often a sign was followed by a round that found no loop.
type answered struct {
	next  time.Time // not before
	last  time.Time // shown
	pause time.Duration
}

// lifted is when a port was unblocked, and how long it would have had to wait for the next try.
type lifted struct {
	at    time.Time
	pause time.Duration
}

// yield is a port that will be blocked at a time unless the loop is open by then.
type yield struct {
	until    time.Time
	segments []Segment
}

// round is the running round; zero if none is running.
type round struct {
	began    time.Time
	segments []Segment
	sent     int           // number of times
	look     time.Time     // when to evaluate what came back; zero: not set yet
	tries    []plan.PortID // blocked ports that are unblocked unless a probe comes back
	yielded  []plan.PortID // ports that are blocked if a probe comes back, whatever other hosts do
}

// New returns a machine in which these ports are blocked, as an earlier machine left them.
func New(blocks []Block) *Machine {
	m := &Machine{signs: map[Sign]*answered{}, ways: map[Way]time.Time{}, blocks: map[plan.PortID]*Block{},
		lifted: map[plan.PortID]lifted{},
		others: map[plan.PortID]time.Time{}, yields: map[plan.PortID]yield{}}
	for _, b := range blocks {
		m.blocks[b.Port] = &b
	}
	return m
}

// Blocks returns the ports that are blocked, sorted.
func (m *Machine) Blocks() []Block {
	list := make([]Block, 0, len(m.blocks))
	for _, b := range m.blocks {
		list = append(list, *b)
	}
	slices.SortFunc(list, func(a, b Block) int {
		return cmp.Or(cmp.Compare(a.Port.Switch, b.Port.Switch), cmp.Compare(a.Port.Name, b.Port.Name))
	})
	return list
}

// Blocked returns the block of a port; false if the port is not blocked.
func (m *Machine) Blocked(port plan.PortID) (Block, bool) {
	if b := m.blocks[port]; b != nil {
		return *b, true
	}
	return Block{}, false
}

// Signed processes a sign of a loop. A sign that was seen before and turned out to be no loop starts probes only after
// a pause.
func (m *Machine) Signed(s Sign, now time.Time) {
	a := m.signs[s]
	if a == nil || now.Sub(a.last) >= forgetAfter {
		if len(m.signs) >= mostSigns {
			maps.DeleteFunc(m.signs, func(_ Sign, a *answered) bool { return now.Sub(a.last) >= forgetAfter })
		}
		if len(m.signs) >= mostSigns {
			clear(m.signs)
		}
		a = &answered{}
		m.signs[s] = a
	}
	a.last = now
	if now.Before(a.next) {
		return
	}
	a.pause = min(max(2*a.pause, firstPause), longPause)
	a.next = now.Add(a.pause)
	if len(m.waiting) < mostWaiting && !slices.Contains(m.waiting, s.Segment) &&
		!slices.Contains(m.round.segments, s.Segment) {
		m.waiting = append(m.waiting, s.Segment)
	}
}

// Came processes a probe of a round that has come back. The segment into which it came is probed as well: the loop may
// continue there.
func (m *Machine) Came(w Way, number uint64, now time.Time) {
	if number != m.number || m.round.began.IsZero() {
		return
	}
	if _, known := m.ways[w]; !known && len(m.ways) >= mostWays {
		return
	}
	m.ways[w] = now
	if m.round.look.IsZero() {
		m.round.look = now.Add(settleFor)
	}
	if s := w.In.Segment; !slices.Contains(m.round.segments, s) && len(m.round.segments) < mostSegments {
		m.round.segments = append(m.round.segments, s)
		m.send = append(m.send, Send{m.number, []Segment{s}})
		m.round.look = now.Add(settleFor)
	}
}

// Met records that a probe of another host came in by the port: if both hosts find the loop, that host blocks its end.
func (m *Machine) Met(port plan.PortID, now time.Time) { m.others[port] = now }

// See takes over the paths that devices show. Loops that these make are known without a probe.
func (m *Machine) See(ways []Way, now time.Time) {
	m.seen = ways
	want := map[plan.PortID]Loop{}
	for _, l := range Find(ways) {
		if l.Port != (plan.PortID{}) {
			want[l.Port] = l
		}
	}
	for id, b := range m.blocks {
		if _, still := want[id]; b.Seen && !still {
			m.lift(id, now)
		}
	}
	for id, l := range want {
		if b := m.blocks[id]; b == nil || !b.Seen {
			m.block(l, true, now)
		}
	}
}

// Keep removes the ports that no longer exist or have no device.
func (m *Machine) Keep(there func(plan.PortID) bool) {
	maps.DeleteFunc(m.blocks, func(id plan.PortID, _ *Block) bool { return !there(id) })
	maps.DeleteFunc(m.lifted, func(id plan.PortID, _ lifted) bool { return !there(id) })
	maps.DeleteFunc(m.others, func(id plan.PortID, _ time.Time) bool { return !there(id) })
	maps.DeleteFunc(m.yields, func(id plan.PortID, _ yield) bool { return !there(id) })
	maps.DeleteFunc(m.ways, func(w Way, _ time.Time) bool { return !there(w.Out.ID) || !there(w.In.ID) })
}

// Free unblocks a port whose loop detection was turned off.
func (m *Machine) Free(port plan.PortID, now time.Time) {
	if m.blocks[port] != nil {
		m.lift(port, now)
		delete(m.lifted, port)
	}
}

// Retry tries a blocked port at once; false if the port is not blocked because of a probe.
func (m *Machine) Retry(port plan.PortID, now time.Time) bool {
	b := m.blocks[port]
	if b == nil || b.Seen {
		return false
	}
	b.Retry, b.Pause = now, 0
	return true
}

// Due advances the time and returns what must be sent, and what has changed.
func (m *Machine) Due(now time.Time) (send []Send, changes []Change) {
	m.goOn(now)
	if m.round.began.IsZero() {
		m.begin(now)
	}
	send, m.send = m.send, nil
	return send, m.Changes()
}

// Changes returns the changes that were not reported yet.
func (m *Machine) Changes() []Change {
	changes := m.changes
	m.changes = nil
	return changes
}

// Next returns when Due must be called again; zero if nothing will ever be due.
func (m *Machine) Next() (next time.Time) {
	sooner := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	if r := &m.round; !r.began.IsZero() {
		if len(m.send) > 0 {
			return r.began
		}
		sooner(r.began.Add(roundLasts))
		sooner(r.look)
		if r.sent <= len(resend()) {
			sooner(r.began.Add(resend()[r.sent-1]))
		}
		return next
	}
	for _, b := range m.blocks {
		if !b.Seen {
			sooner(b.Retry)
		}
	}
	for _, y := range m.yields {
		sooner(y.until)
	}
	return next
}
