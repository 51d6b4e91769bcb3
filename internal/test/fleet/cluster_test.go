package fleet

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/clockshift"
	"heddle/internal/test/testkit/realhost"
)

// controllers are three of one cluster, each on a machine of its own in the fleet's management network. The first one
// is the fleet's.
func (f *fleet) controllers() (all [3]*realhost.Controller) {
	f.t.Helper()
	return f.controllersAt(nil, nil, nil)
}

// controllersAt are controllers with clocks of their own.
func (f *fleet) controllersAt(clocks ...*clockshift.Clock) (all [3]*realhost.Controller) {
	f.t.Helper()
	all[0] = f.controller
	all[0].Clock = clocks[0]
	all[0].Start()
	for i := 1; i < len(all); i++ {
		name := fmt.Sprintf("controller%d", i+1)
		ns := testkit.NS(f.t, name)
		join(f.t, ns, "eth0", f.network, "c-"+name)
		inside(f.t, f.network, func() error { return enslave("c-"+name, "net-mgmt") })
		f.address(ns, "eth0", fmt.Sprintf("10.0.0.%d/24", 100+i))
		all[i] = realhost.NewController(f.t, ns, fmt.Sprintf("10.0.0.%d:7411", 100+i))
		all[i].Name, all[i].Clock = name, clocks[i]
		if i == 2 { // as a service does that was just installed
			all[i].Start()
		}
		all[i].Joins(all[0])
	}
	return all
}

// on is which controller a host is connected to, by what another one says.
func on(c *realhost.Controller, host string) string {
	list, err := c.Hosts(c.T.Context())
	if err != nil {
		return ""
	}
	for _, h := range list.Hosts {
		if h.Name == host && h.State != api.HostDisconnected {
			return h.Controller
		}
	}
	return ""
}

// Three controllers are one cluster: each takes changes and shows all hosts, and the hosts of one that is killed are at
// another one within seconds.
func TestS103_ThreeControllersServeOneCluster(t *testing.T) {
	testkit.Long(t, "kills controllers one after the other; TestLookingAtTheFleet_HostsOfOtherControllers has "+
		"three of them")
	t.Parallel()
	f := newFleet(t)
	all := f.controllers()
	for n, h := range f.hosts { // by different controllers, with a token of a third
		token, err := all[2-n].JoinToken(t.Context(), api.JoinTerms{Labels: map[string]string{"rack": "a"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Join(t.Context(), api.Join{Controller: all[n].Address, Token: token.Token,
			Name: fmt.Sprintf("esx%d", n)}); err != nil {
			t.Fatal(err)
		}
	}
	all[1].Await("both are connected", func() bool { return on(all[1], "esx0") != "" && on(all[1], "esx1") != "" })
	if out := all[1].Define(fleetText); len(out.Hosts) != 2 || len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	for n := range f.hosts {
		f.hosts[n].Up("uplink1")
		f.connect(n, 3, "p-web", "web")
	}
	between := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	for i, c := range all {
		for n := range f.hosts {
			c.Await("both are up", func() bool { return c.StateOf(fmt.Sprintf("esx%d", n)) == api.HostUp })
		}
		c.Await("the ports of both are listed", func() bool {
			list, err := c.Ports(t.Context(), api.FleetPortQuery{Switch: "dvs"})
			return err == nil && len(list) == 2
		})
		text := strings.Replace(fleetText, "access: 20", fmt.Sprintf("access: %d", 21+i), 1)
		if out := c.Define(text); len(out.Hosts) != 2 || len(out.Waiting) > 0 {
			t.Errorf("a change at %s: %+v", c.Name, out)
		}
	}

	gone := 0
	for i, c := range all {
		if c.Name == on(all[0], "esx0") {
			gone = i
		}
	}
	left := all[(gone+1)%3]
	all[gone].End(syscall.SIGKILL)
	killed := time.Now()
	left.Await("the host is at another controller", func() bool {
		where := on(left, "esx0")
		return where != "" && where != all[gone].Name
	})
	t.Logf("at another controller after %s", time.Since(killed).Round(time.Millisecond))
	if out := left.Define(fleetText); len(out.Hosts) != 2 || len(out.Waiting) > 0 {
		t.Errorf("a change while one is gone: %+v", out)
	}
	all[gone].Start()
	all[gone].Await("it knows both hosts", func() bool {
		return all[gone].StateOf("esx0") == api.HostUp && all[gone].StateOf("esx1") == api.HostUp
	})
	f.withoutMajority(all)
	f.whole("between the hosts", between)
}

// withoutMajority kills two of three controllers: the one that is left marks what it shows, takes no change and sends
// the hosts away, until another one is back.
func (f *fleet) withoutMajority(all [3]*realhost.Controller) {
	f.t.Helper()
	all[1].End(syscall.SIGKILL)
	all[2].End(syscall.SIGKILL)
	all[0].Await("what is shown is marked", func() bool {
		list, err := all[0].Hosts(f.t.Context())
		return err == nil && list.Stale != "" && len(list.Unreachable) == 2
	})
	f.hosts[0].Await("the host is sent away", func() bool {
		m, err := f.hosts[0].Membership(f.t.Context())
		return err == nil && m.Connected == ""
	})
	_, err := all[0].Fleet.Define(f.t.Context(), api.Define{File: "fleet.yaml", Content: fleetText + "# once more\n"})
	if err == nil {
		f.t.Error("a change was taken without a majority")
	}
	all[1].Start()
	for n := range f.hosts {
		name := fmt.Sprintf("esx%d", n)
		all[0].Await(name+" is up again", func() bool { return all[0].StateOf(name) == api.HostUp })
	}
	all[0].Await("what is shown with a majority is not marked", func() bool {
		list, err := all[0].Hosts(f.t.Context())
		return err == nil && list.Stale == ""
	})
	if out := all[0].Define(strings.Replace(fleetText, "access: 20", "access: 29", 1)); len(out.Waiting) > 0 {
		f.t.Errorf("a change with a majority: %+v", out)
	}
}
