package rpc

import (
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	"heddle/internal/platform/health"
	"heddle/internal/platform/pki/issuing"
)

// A controller whose clock has gone more than a day ahead of the others' makes no certificate that they would refuse: a
// host that joins is told what is wrong and where, and joins at another one, or when the clock is right again.
func TestS103_AControllerWhoseClockIsADayAheadMakesNoCertificates(t *testing.T) {
	c := newController(t)
	other := controllerOn(t, "c2", c.authority, c.disk)
	third := controllerOn(t, "c3", c.authority, c.disk)
	for _, one := range []*controller{c, other, third} {
		one.await("the controllers know each other", func() bool { return len(one.Others()) == 2 })
	}
	joins := func(at *controller, name string) error {
		m := &machine{c: at, dir: t.TempDir()}
		_, err := m.ask(name, c.token())
		return err
	}
	jumps := func(d time.Duration) {
		c.later.Store(int64(d))
		for _, o := range c.Others() { // what was heard before the clock was set
			if at := c.ClockOf(o.ID); at != nil {
				at.Heard = at.Heard.Add(-issuing.ReadingTime)
			}
		}
	}
	jumps(49 * time.Hour)
	// A clock that is only asked about, as for what may be left out, refuses nothing, and nothing says that it does.
	const refused = "no certificate is made"
	c.token() // which leaves the removal of old ones for another time
	if c.issuing.Fits(t.Context(), health.Clocks.Doubted) || c.log.count(refused) > 0 {
		t.Error("it is asked about its clock as if a certificate were refused, or it fits")
	}
	err := joins(c, "esx1")
	if c.log.count(refused) == 0 {
		t.Error("the log does not say that a certificate is refused")
	}
	if connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(),
		"controller c1 makes no certificates: its clock is 49h0m0s ahead of those of most other controllers") {
		t.Errorf("at the controller with that clock: %v", err)
	}
	if err := joins(other, "esx1"); err != nil {
		t.Errorf("at another one, of whose two others one is ahead: %v", err)
	}
	jumps(0)
	if err := joins(c, "esx2"); err != nil {
		t.Errorf("after the clock was set right: %v", err)
	}
}
