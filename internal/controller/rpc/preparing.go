package rpc

import (
	"crypto/rand"
	"encoding/json"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/together"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// togetherKey is the key of the newest decision that hosts change together.
func togetherKey() store.Key { return store.Key{Kind: "together", Name: "current"} }

// How often a host is asked what its clock shows: soon after it came, and then seldom. Before a change that hosts make
// together they are asked anew.
const (
	firstClock = time.Second
	clockEvery = 20 * time.Second
)

// deciding is what a controller knows of changes that hosts make together. The fleet's lock guards the decision.
type deciding struct {
	// start is random, and names the clock that began with it.
	start string
	began time.Time
	// decision is the newest; nil for none. instant is when hosts make it, by this controller's clock.
	decision *together.Decision
	instant  int64
	tally    *together.Tally
}

func newDeciding() deciding {
	return deciding{start: rand.Text(), began: time.Now(), tally: &together.Tally{}}
}

// ticks is what this controller's clock shows, in nanoseconds: one that nobody sets.
func (d *deciding) ticks() int64 { return int64(time.Since(d.began)) }

// preparation is the part of a connection that has to do with changes that hosts make together. The fleet's lock guards
// it.
type preparation struct {
	able   bool // the host prepares changes
	clocks together.Clock
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

// preparing is the part of a fleet that has hosts prepare a change.
type preparing struct{ *fleet }

// add adds to a message what the host is to prepare, and the question about its clock. has is what it has been sent.
func (f preparing) add(c *conn, has *content, m *controllerv1.FollowSliceResponse) *controllerv1.FollowSliceResponse {
	if !c.prep.able {
		return m
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	message := func() *controllerv1.FollowSliceResponse {
		if m == nil {
			m = &controllerv1.FollowSliceResponse{}
		}
		return m
	}
	if c.prep.id != "" && !c.prep.sent {
		c.prep.sent = true
		message().Prepare = &controllerv1.PrepareChange{Id: c.prep.id, Update: f.update(has.set, c.prep.set)}
	}
	if due := f.clockDue(c) <= 0; due || c.prep.askClock && !c.prep.open {
		message().Clock = &controllerv1.ClockQuestion{}
	}
	return m
}

// asks notes that a question about a host's clock goes now, and returns when that is.
func (f preparing) asks(c *conn) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.prep.askClock, c.prep.open, c.prep.asked = false, true, f.deciding.ticks()
	return c.prep.asked
}

// clockDue is after what time a host is asked next what its clock shows. The caller holds the lock.
func (f preparing) clockDue(c *conn) time.Duration {
	every := clockEvery
	if c.prep.clocks.Samples() == 0 {
		every = firstClock
	}
	return every - time.Duration(f.deciding.ticks()-c.prep.asked)
}

// wait is how long a connection may sleep.
func (f preparing) wait(c *conn) time.Duration {
	if !c.prep.able {
		return clockEvery
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(time.Millisecond, f.clockDue(c))
}

// clock takes in what a host's clock shows. The answer came at that time of this controller's.
func (f preparing) clock(c *conn, a *controllerv1.ClockAnswer, came int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !c.prep.open || a.GetAsked() != c.prep.asked {
		return
	}
	c.prep.open = false
	c.prep.clocks.Add(together.Sample{Sent: c.prep.asked, Came: a.GetReceived(), Went: a.GetSent(), Received: came})
	if c.prep.id != "" { // somebody waits for it
		f.wake()
	}
}

// prepared takes in whether a host can make the change that it was asked to prepare. The caller holds the lock.
func (c *conn) prepared(a *controllerv1.PreparedChange) {
	if a == nil || a.GetId() != c.prep.id {
		return
	}
	c.prep.said, c.prep.problems = true, a.GetProblems()
}

// decided takes in a decision of the store: until the instant nothing is sent that a host may activate at once. The
// caller holds the lock.
func (f preparing) decided(doc []byte) {
	var d together.Decision
	if err := json.Unmarshal(doc, &d); err != nil {
		f.log.Error("a decision that hosts change together cannot be read; they change as soon as they can", "err", err)
		return
	}
	if f.deciding.decision != nil && f.deciding.decision.ID == d.ID {
		return
	}
	now := f.deciding.ticks()
	f.deciding.decision, f.deciding.instant = &d, d.Instant(f.deciding.start, now, time.Now())
	if left := time.Duration(f.deciding.instant - now); left > 0 {
		time.AfterFunc(left, func() { // those that had to wait
			f.mu.Lock()
			defer f.mu.Unlock()
			f.pokeAll()
		})
	}
}

// notBefore is the instant before which a host is not to activate what it is sent now, by its own clock; 0 for at once.
// held: it is sent nothing before that instant, since it could not wait for it. The caller holds the lock.
func (f preparing) notBefore(c *conn) (at int64, held bool) {
	now := f.deciding.ticks()
	if f.deciding.decision == nil || f.deciding.instant <= now {
		return 0, false
	}
	ahead, _, known := c.prep.clocks.Ahead(now)
	if !c.prep.able || !known {
		return 0, true
	}
	c.prep.id, c.prep.set = "", nil // what it prepared is decided
	c.prep.made = &controllerv1.TogetherHere{Id: f.deciding.decision.ID, Tells: c.prep.made.GetTells()}
	return f.deciding.instant + ahead, false
}

// changed takes in when a host changed that was to wait for the instant, by its own clock. The caller holds the lock.
func (f preparing) changed(c *conn, at int64) {
	if at == 0 || c.prep.made == nil || f.deciding.decision == nil || c.prep.made.GetId() != f.deciding.decision.ID {
		return
	}
	if ahead, _, known := c.prep.clocks.Ahead(f.deciding.ticks()); known {
		c.prep.made = &controllerv1.TogetherHere{Id: c.prep.made.GetId(), Off: at - ahead - f.deciding.instant,
			Told: true, Tells: c.prep.made.GetTells()}
	}
}

// told takes in what a host says of the newest change that it made together with others, when it connects.
func (p *preparation) told(hello *controllerv1.HostHello) {
	if hello.GetTellsTogether() {
		p.made = &controllerv1.TogetherHere{Id: hello.GetTogetherId(), Off: hello.GetTogetherOff(),
			Told: hello.GetTogetherId() != "" && !hello.GetTogetherUnsure(), Tells: true}
	}
}

// togetherAt is the change whose instant a host waits for; "" where it waits for none. The caller holds the lock.
func (c *conn) togetherAt(notBefore int64) string {
	if notBefore == 0 {
		return ""
	}
	return c.prep.made.GetId()
}
