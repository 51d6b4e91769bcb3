package fleet

import (
	"bytes"
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

// lost is the time of a board without a battery, a minute after it got power.
var lost = time.Unix(60, 0)

// restart starts a host's agent anew with a clock that shows that time now.
func (f *fleet) restart(n int, clock time.Time) {
	f.t.Helper()
	h := f.hosts[n]
	h.End(syscall.SIGTERM)
	h.Clock = clockshift.Showing(clock)
	h.Start("")
}

// doctorAt is what "heddle doctor" finds on a host of which the clock is lost.
func (f *fleet) doctorAt(n int) string {
	f.t.Helper()
	h := f.hosts[n]
	cmd := h.Command("doctor", "-o", "json")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := clockshift.Start(f.t, h.NS, cmd, clockshift.Showing(lost)); err != nil {
		f.t.Fatal(err)
	}
	_ = cmd.Wait() // it fails for what it finds
	return strings.ReplaceAll(out.String(), `\"`, `"`)
}

// A host whose clock says 1970 joins a cluster, follows its controllers, and finds them again after either is started
// anew: it knows that its clock is wrong.
func TestS103_AHostWhoseClockSays1970JoinsIn(t *testing.T) {
	testkit.Long(t, "waits for a host to find its controllers again")
	t.Parallel()
	f := newFleetSized(t, 1, ownConfig, "own1", "own2")
	carried := f.stream("p-own1@0", "p-own2@0", fleetMAC(0, 1), fleetMAC(0, 2))
	f.controller.Start()
	f.controller.Define(fleetText)
	f.restart(0, lost)
	f.controller.Join(f.hosts[0].Host, "esx0", map[string]string{"rack": "a"})
	f.inState("esx0", api.HostUp)
	f.connect(0, 3, "p-web", "web")
	if out := f.controller.Define(strings.Replace(fleetText, "access: 10", "access: 11", 1)); len(out.Waiting) > 0 {
		t.Errorf("a change: %+v", out)
	}
	if got := f.vlan(0, "p-web"); got != "access 11" {
		t.Errorf("the port has VLAN %s", got)
	}
	f.restart(0, lost)
	f.inState("esx0", api.HostUp)
	f.has("the host's doctor", f.doctorAt(0), "it says 1970-01-01 00:0", "date -s")
	f.exchange(func() {})
	f.inState("esx0", api.HostUp)
	if out := f.controller.Define(fleetText); len(out.Waiting) > 0 {
		t.Errorf("a change: %+v", out)
	}

	// A clock that is ahead can't be forgiven. The host says so, and goes on; it needs no new start once it is right.
	f.hosts[0].Clock.Set(t, time.Now().AddDate(10, 0, 0))
	f.exchange(func() {})
	f.hosts[0].Await("the host says what is wrong", func() bool {
		m, err := f.hosts[0].Membership(t.Context())
		return err == nil && strings.Contains(m.Error, "it expired on ") &&
			strings.Contains(m.Error, "correct this clock")
	})
	f.hosts[0].Clock.Set(t, time.Now())
	f.inState("esx0", api.HostUp)
	f.whole("on the host's own switch", carried)
}

// Controllers of which the clocks are an hour off are one cluster all the same: hosts join by any of them and have what
// each of them defines, and the status says whose clock is another.
func TestS103_ControllersWithClocksAnHourOffAreOneCluster(t *testing.T) {
	testkit.Long(t, "starts three controllers; TestLookingAtTheFleet_HostsOfOtherControllers does as well")
	t.Parallel()
	f := newFleet(t)
	all := f.controllersAt(nil, clockshift.Showing(time.Now().Add(time.Hour)),
		clockshift.Showing(time.Now().Add(-time.Hour)))
	for n, h := range f.hosts {
		all[2-n].Join(h.Host, []string{"esx0", "esx1"}[n], map[string]string{"rack": "a"})
	}
	for i, c := range all {
		for _, name := range []string{"esx0", "esx1"} {
			c.Await(name+" is up", func() bool { return c.StateOf(name) == api.HostUp })
		}
		text := strings.Replace(fleetText, "access: 20", fmt.Sprintf("access: %d", 21+i), 1)
		if out := c.Define(text); len(out.Hosts) != 2 || len(out.Waiting) > 0 {
			t.Errorf("a change at %s: %+v", c.Name, out)
		}
	}
	for i, want := range [][]string{{"controller2's clock is 1h0m", "controller3's clock is 1h0m"},
		{"controller1's clock is 1h0m", "controller3's clock is 2h0m"}} {
		all[i].Await("the status says whose clock is another", func() bool {
			out, _, _ := all[i].Heddle("doctor", "--controller", all[i].Socket(), "-o", "json")
			return !slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(out, part) })
		})
	}
}
