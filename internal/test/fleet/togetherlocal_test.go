package fleet

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/clockshift"
)

// The clocks on the wall of hosts and of the controller are set by most of an hour between the decision and the
// instant: all hosts change at the instant, since that is by clocks that nobody sets.
func TestS101_ClocksThatAreSetMeanwhileMoveNoInstant(t *testing.T) {
	testkit.Long(t, "sets clocks; TestS101_HostsChangeTogetherOrNotAtAll has changes together")
	t.Parallel()
	f := newFleetSized(t, 3, ownConfig, "own1", "own2")
	f.controller.Clock = clockshift.Showing(time.Now())
	f.controller.Start()
	for n, h := range f.hosts {
		f.restart(n, time.Now())
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	f.controller.Define(fleetText)
	for n := range f.hosts {
		f.connect(n, 4, "p-db", "db")
	}
	const most = time.Minute // what a busy machine may be late; clocks that are wrong are wrong by much more
	set := func(by time.Duration) {
		now := time.Now()
		f.controller.Clock.Set(t, now.Add(by/2))
		for n, h := range f.hosts {
			h.Clock.Set(t, now.Add(time.Duration(1-n)*by)) // ahead, as it is, and behind
		}
	}
	out, ended := new(*api.Defined), make(chan error, 1)
	go func() {
		var err error
		*out, err = f.together(dbVLAN(30), api.Together{Lead: 3 * time.Second, Patience: time.Minute})
		ended <- err
	}()
	f.controller.Await("it is decided", func() bool { return f.decidedTo(30) })
	set(40 * time.Minute)
	if got := f.vlans(); slices.Contains(got, "access 30") {
		t.Logf("hosts have %v: this shows less than it should", got)
	}
	err := <-ended
	set(0)
	if err != nil || len((*out).Waiting) > 0 {
		t.Fatalf("together: %+v, %v", *out, err)
	}
	flips := f.flips((*out).Revision)
	if len(flips) != 3 {
		t.Fatalf("hosts changed at %v", flips)
	}
	apart := slices.Max(flips) - slices.Min(flips)
	t.Logf("%s apart; late: %v", apart, (*out).Together.Late)
	if apart > most {
		t.Errorf("the hosts are %s apart", apart)
	}
}

// withStandby is fleetText with a second uplink that stands by, and that VLAN of the port group db.
func withStandby(vlan int) string {
	text := strings.Replace(dbVLAN(vlan), "uplinks: [{name: uplink1}]", "uplinks: [{name: uplink1}, {name: uplink2}]\n"+
		"  defaults: {teaming: {active: [uplink1], standby: [uplink2]}}", 1)
	return strings.Replace(text, "device: eno2}", "device: eno2}, {name: uplink2, device: eno3}", 1)
}

// newStandbyFleet is three hosts with two uplinks each.
func newStandbyFleet(t *testing.T) *fleet {
	t.Helper()
	f := newFleetSized(t, 3, ownConfig, "own1", "own2")
	f.controller.Start()
	for n, h := range f.hosts {
		far := fmt.Sprintf("eno3-%d", n)
		join(t, h.NS, "eno3", f.network, far)
		inside(t, f.network, func() error { return enslave(far, "net-eno2") })
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	if out := f.controller.Define(withStandby(20)); len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	for n, h := range f.hosts {
		f.connect(n, 4, "p-db", "db")
		h.Up("uplink1", "uplink2")
	}
	return f
}

// uses waits until a port leaves by an uplink.
func (f *fleet) uses(n int, port, uplink string) {
	f.t.Helper()
	f.hosts[n].Await(port+" leaves by "+uplink, func() bool {
		return slices.Equal(f.port(n, port).Uplinks, []string{uplink})
	})
}

// saysAnew is what an agent says that has made a prepared change again.
const saysAnew = "what is to change together with other hosts was made anew"

// What changes on a host that is ready is in force at once: a port that connects, and an uplink that fails over. The
// change is made beside it, or refused where that can't be.
func TestS101_WhatHappensOnAHostThatIsReadyCountsAtOnce(t *testing.T) {
	testkit.Long(t, "TestS101_HostsChangeTogetherOrNotAtAll has changes together")
	t.Parallel()
	f := newStandbyFleet(t)
	vlan := 20
	for _, c := range []struct {
		name string
		text func(vlan int) string
		// happens on the first host, then holds when the change is made; refused is what it is refused for, "" where
		// it is made.
		happens, then func(*fleet)
		refused       string
	}{
		{name: "a port connects", text: withStandby, happens: func(f *fleet) {
			anew := strings.Count(f.hosts[0].Log(), saysAnew)
			f.connect(0, 5, "p-late", "db")
			f.reaches("p-db@0", "p-late@0", fleetMAC(0, 4), fleetMAC(0, 5))
			f.hosts[0].Await("it is made anew", func() bool {
				return strings.Count(f.hosts[0].Log(), saysAnew) > anew
			})
		}},
		{name: "an uplink fails over", text: withStandby, happens: func(f *fleet) {
			f.uses(0, "p-db", "uplink1")
			f.link(0, "eno2", false)
			f.uses(0, "p-db", "uplink2")
			f.reaches("p-db@0", "p-db@1", fleetMAC(0, 4), fleetMAC(1, 4))
		}},
		{name: "an uplink comes back", text: withStandby, happens: func(f *fleet) {
			f.link(0, "eno2", true)
			f.uses(0, "p-db", "uplink1")
			f.reaches("p-db@0", "p-db@1", fleetMAC(0, 4), fleetMAC(1, 4))
		}},
		{name: "a port connects to what the change removes", text: func(vlan int) string {
			return strings.Replace(withStandby(vlan), "  - {name: spare, vlan: {access: 40}}\n", "", 1)
		}, happens: func(f *fleet) { f.connect(0, 6, "p-spare", "spare") }, then: func(f *fleet) {
			if got := f.vlan(0, "p-spare"); got != "access 40" { // it goes on by what it had
				f.t.Errorf("its VLAN is %s", got)
			}
		}},
		{name: "a device is taken that the change needs", text: func(vlan int) string {
			text := strings.Replace(withStandby(vlan), "{name: uplink2}]", "{name: uplink2}, {name: uplink3}]", 1)
			return strings.Replace(text, "device: eno3}", "device: eno3}, {name: uplink3, device: eno4}", 1)
		}, happens: func(f *fleet) {
			f.hosts[0].Configure(strings.Replace(fmt.Sprintf(ownConfig, 0, 0), "device: eno1}",
				"device: eno1}, {name: uplink2, device: eno4}", 1))
		}, refused: "host esx0 can't make the change"},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := *f
			row.t = t
			a := &agreeing{fleet: &row, decides: f.controller, asked: f.controller}
			before := vlan
			vlan++
			a.localChange(c.text(vlan), func() { c.happens(&row) }, before)
			if c.refused != "" {
				if a.err == nil || !strings.Contains(a.err.Error(), c.refused) {
					t.Errorf("it was answered %v, %v: want %q", a.out, a.err, c.refused)
				}
				vlan = before
			} else if a.err != nil || a.out.Together.Hosts != 3 {
				t.Fatalf("the change: %+v, %v", a.out, a.err)
			}
			for n := range row.hosts {
				if got := row.vlan(n, "p-db"); got != fmt.Sprintf("access %d", vlan) {
					t.Errorf("host %d has VLAN %s, want %d", n, got, vlan)
				}
			}
			if got := row.vlan(0, "p-late"); got != fmt.Sprintf("access %d", vlan) {
				t.Errorf("the port that connected has VLAN %s, want %d", got, vlan)
			}
			row.reaches("p-db@0", "p-db@1", fleetMAC(0, 4), fleetMAC(1, 4))
			if c.then != nil {
				c.then(&row)
			}
		})
	}
}

// localChange has hosts make a change together; something happens when all are ready but the last one.
func (a *agreeing) localChange(text string, happens func(), before int) {
	a.t.Helper()
	ready := a.sayings(saysReady)
	a.hosts[2].Signal(syscall.SIGSTOP)
	a.ended = make(chan struct{})
	go func() {
		defer close(a.ended)
		a.out, a.err = a.fleet.together(text, api.Together{Patience: time.Minute})
	}()
	a.told(saysReady, ready, 0, 1)
	happens()
	if got := a.vlan(0, "p-db"); got != fmt.Sprintf("access %d", before) {
		a.t.Errorf("it has VLAN %s before the decision", got)
	}
	a.hosts[2].Signal(syscall.SIGCONT)
	<-a.ended
}
