package together

import (
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
	"heddle/internal/slice"
)

// How often a host is asked what its clock shows: soon after it came, and then seldom. Before a change that hosts make
// together they are asked anew.
const (
	firstClock = time.Second
	clockEvery = 20 * time.Second
)

// Hub is what a controller knows of changes that hosts make together, and the part of the conversations with hosts that
// is about them.
type Hub struct {
	Tally Tally
	log   *slog.Logger
	// start is random, and names the clock that began with it.
	start string
	began time.Time

	mu    sync.Mutex
	hosts map[string]*preparation // those that are connected here, by id
	// decision is the newest; nil for none. instant is when hosts make it, by this controller's clock.
	decision *Decision
	instant  int64
	changed  chan struct{} // closed and replaced when a host has said something that somebody may wait for
}

// preparation is what one connection of a host has to do with such changes.
type preparation struct {
	conn   *part.Conn
	able   bool // the host prepares changes
	clocks Clock
	// askClock: the host is asked what its clock shows as soon as can be. asked is when it was last, open that it
	// has not answered.
	askClock, open bool
	asked          int64
	// id is that of the change that the host is to prepare; "" for none. set is what it makes of the host's content.
	id       string
	set      *slice.Set
	sent     bool
	said     bool
	problems []string
	// made is how the host made the newest change that it made together with others.
	made *controllerv1.TogetherHere
}

// NewHub is a hub whose clock begins now.
func NewHub(log *slog.Logger) *Hub {
	return &Hub{log: log, start: rand.Text(), began: time.Now(), hosts: map[string]*preparation{},
		changed: make(chan struct{})}
}

// Start names this controller's clock.
func (h *Hub) Start() string { return h.start }

// Ticks is what this controller's clock shows, in nanoseconds: one that nobody sets.
func (h *Hub) Ticks() int64 { return int64(time.Since(h.began)) }

// wake wakes who waits for hosts. The caller holds the lock.
func (h *Hub) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// of is a host by that connection; nil where it has another one. The caller holds the lock.
func (h *Hub) of(id string, c *part.Conn) *preparation {
	if p := h.hosts[id]; p != nil && p.conn == c {
		return p
	}
	return nil
}

// Connected implements part.Follower.
func (h *Hub) Connected(id string, c *part.Conn, first *controllerv1.FollowSliceRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	hello := first.GetHello()
	p := &preparation{conn: c, able: hello.GetTogether(), asked: h.Ticks()}
	if hello.GetTellsTogether() {
		p.made = &controllerv1.TogetherHere{Id: hello.GetTogetherId(), Off: hello.GetTogetherOff(),
			Told: hello.GetTogetherId() != "" && !hello.GetTogetherUnsure(), Tells: true}
	}
	h.hosts[id] = p
	h.wake()
}

// Disconnected implements part.Follower.
func (h *Hub) Disconnected(id string, c *part.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of(id, c) != nil {
		delete(h.hosts, id)
		h.wake()
	}
}

// Hear implements part.Hearer: a host says whether it can make a change that it was asked to prepare, and when it made
// one.
func (h *Hub) Hear(id string, c *part.Conn, m *controllerv1.FollowSliceRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.of(id, c)
	if p == nil {
		return
	}
	if a := m.GetPrepared(); a != nil && a.GetId() == p.id {
		p.said, p.problems = true, a.GetProblems()
		h.wake()
	}
	a := m.GetAcknowledgement()
	if a == nil || a.GetResend() || len(a.GetVersion().GetHash()) != len(slice.Hash{}) || len(a.GetProblems()) > 0 {
		return
	}
	h.made(p, a.GetActiveAt())
}

// made takes in when a host changed that was to wait for the instant, by its own clock. The caller holds the lock.
func (h *Hub) made(p *preparation, at int64) {
	if at == 0 || p.made == nil || h.decision == nil || p.made.GetId() != h.decision.ID {
		return
	}
	if ahead, _, known := p.clocks.Ahead(h.Ticks()); known {
		p.made = &controllerv1.TogetherHere{Id: p.made.GetId(), Off: at - ahead - h.instant, Told: true,
			Tells: p.made.GetTells()}
	}
}

// Objects implements part.Speaker: a host is asked what its clock shows. Asks is called when that goes.
func (h *Hub) Objects(id string, c *part.Conn, m part.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.of(id, c)
	if p != nil && p.able && (h.clockDue(p) <= 0 || p.askClock && !p.open) {
		m().Clock = &controllerv1.ClockQuestion{}
	}
}

// Prepares is the change that a host is to prepare and was not told yet, with what it makes of the host's content; ""
// for none. The host is told then.
func (h *Hub) Prepares(id string, c *part.Conn) (change string, set *slice.Set) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.of(id, c)
	if p == nil || !p.able || p.id == "" || p.sent {
		return "", nil
	}
	p.sent = true
	return p.id, p.set
}

// Asks notes that a question about a host's clock goes now, and returns when that is.
func (h *Hub) Asks(id string, c *part.Conn) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.Ticks()
	if p := h.of(id, c); p != nil {
		p.askClock, p.open, p.asked = false, true, now
	}
	return now
}

// clockDue is after what time a host is asked next what its clock shows. The caller holds the lock.
func (h *Hub) clockDue(p *preparation) time.Duration {
	every := clockEvery
	if p.clocks.Samples() == 0 {
		every = firstClock
	}
	return every - time.Duration(h.Ticks()-p.asked)
}

// Wait is how long a connection may sleep.
func (h *Hub) Wait(id string, c *part.Conn) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.of(id, c)
	if p == nil || !p.able {
		return clockEvery
	}
	return max(time.Millisecond, h.clockDue(p))
}

// Clock takes in what a host's clock shows. The answer came at that time of this controller's.
func (h *Hub) Clock(id string, c *part.Conn, a *controllerv1.ClockAnswer, came int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.of(id, c)
	if p == nil || !p.open || a.GetAsked() != p.asked {
		return
	}
	if p.open = false; p.askClock { // asked for meanwhile, and not sent while this question was open
		p.conn.Poke()
	}
	p.clocks.Add(Sample{Sent: p.asked, Came: a.GetReceived(), Went: a.GetSent(), Received: came})
	if p.id != "" { // somebody waits for it
		h.wake()
	}
}

// Decided takes in a decision of the store: until the instant nothing is sent that a host may activate at once.
func (h *Hub) Decided(doc []byte) {
	var d Decision
	if err := json.Unmarshal(doc, &d); err != nil {
		h.log.Error("a decision that hosts change together cannot be read; they change as soon as they can", "err", err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.decision != nil && h.decision.ID == d.ID {
		return
	}
	now := h.Ticks()
	h.decision, h.instant = &d, d.Instant(h.start, now, time.Now())
	if left := time.Duration(h.instant - now); left > 0 {
		time.AfterFunc(left, h.pokeAll) // those that had to wait
	}
}

func (h *Hub) pokeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.hosts {
		p.conn.Poke()
	}
}

// NotBefore is the instant before which a host is not to activate what it is sent now, by its own clock, and the change
// that it makes then; 0 and "" for at once. held: it is sent nothing before that instant, since it could not wait for
// it.
func (h *Hub) NotBefore(id string, c *part.Conn) (at int64, change string, held bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.Ticks()
	if h.decision == nil || h.instant <= now {
		return 0, "", false
	}
	p := h.of(id, c)
	if p == nil || !p.able {
		return 0, "", true
	}
	ahead, _, known := p.clocks.Ahead(now)
	if !known {
		return 0, "", true
	}
	p.id, p.set = "", nil // what it prepared is decided
	p.made = &controllerv1.TogetherHere{Id: h.decision.ID, Tells: p.made.GetTells()}
	return h.instant + ahead, h.decision.ID, false
}

// Made is how a host that is connected here made the newest change that it made together with others; nil for none.
func (h *Hub) Made(id string) *controllerv1.TogetherHere {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.hosts[id]; p != nil {
		return p.made
	}
	return nil
}

// Said reports whether a host has said whether it can make the change that it is to prepare.
func (h *Hub) Said(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.hosts[id]
	return p != nil && p.said
}
