package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// newThree is three hosts of a cluster of three controllers with portsText, one at each.
func newThree(t *testing.T) (*fleet, [3]*realhost.Controller) {
	t.Helper()
	f := newFleetSized(t, 3, ownConfig, "own1", "own2")
	all := f.controllers()
	for n, h := range f.hosts {
		all[n].Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	all[0].Await("all are connected", func() bool { return len(where(all[0])) == 3 })
	if out := all[0].Define(portsText); len(out.Hosts) != 3 || len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	f.spread(all[0])
	return f, all
}

// where is at which controllers the hosts are, by what one of those says.
func where(c *realhost.Controller) map[string]string {
	at := map[string]string{}
	list, err := c.Hosts(c.T.Context())
	if err != nil {
		return at
	}
	for _, h := range list.Hosts {
		if h.State != api.HostDisconnected && !h.Stale {
			at[h.Name] = h.Controller
		}
	}
	return at
}

// spread awaits that each controller has one host.
func (f *fleet) spread(c *realhost.Controller) {
	f.t.Helper()
	c.Await("each controller has its share of the hosts", func() bool {
		at := map[string]bool{}
		for name := range maps.Values(where(c)) {
			at[name] = true
		}
		return len(at) == 3
	})
}

// conflictEvents are what a host's events say of conflicts of a port.
func (f *fleet) conflictEvents(n int, port string) (list []string) {
	f.t.Helper()
	out := f.hosts[n].must("events", "--no-follow", "--last", "-1", "--kind", "conflict")
	for line := range strings.Lines(out) {
		if _, text, ok := strings.Cut(line, "port "+port+" is in conflict"); ok {
			list = append(list, strings.TrimSpace(text))
		}
	}
	return list
}

// What one of three controllers learns counts at all of them, while they restart one after the other, too.
func TestS78_ThreeControllersGoByWhatOneOfThemLearns(t *testing.T) {
	testkit.Long(t, "restarts three controllers one after the other; TestLookingAtTheFleet_HostsOfOtherControllers "+
		"has three")
	t.Parallel()
	testkit.Tool(t, "curl")
	f, all := newThree(t)
	f.oneVMTwice(all)
	f.rotatedByAll(all)
	f.revokedByAll(all)
}

// oneVMTwice has one VM run on hosts of two controllers, with ephemeral ports too: both are marked and named, without a
// gap while the controllers restart one after the other. The hosts spread over the controllers again after that. The
// mark goes with one of the two guests.
func (f *fleet) oneVMTwice(all [3]*realhost.Controller) {
	f.t.Helper()
	f.mustStartVM(0, 3, "p-web", "web")
	f.mustStartVM(0, 4, "p-a", "fixed")
	for port, vm := range map[string]int{"p-web": 3, "p-a": 4} {
		f.guest(1, vm+10, port) // another adapter: the guests can tell each other apart
		f.mustStartVM(1, vm, port, map[string]string{"p-web": "web", "p-a": "fixed"}[port])
	}
	marked := func() {
		f.t.Helper()
		for _, port := range []string{"p-web", "p-a"} {
			f.conflict(0, port, "runs on host esx1 too")
			f.conflict(1, port, "runs on host esx0 too")
		}
	}
	marked()
	between := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 13))
	for i, c := range all {
		c.End(syscall.SIGTERM)
		c.Start()
		all[(i+1)%3].Await("all hosts are connected", func() bool { return len(where(all[(i+1)%3])) == 3 })
	}
	f.spread(all[0])
	marked()
	f.whole("between guests of one VM", between)
	for n := range 2 {
		if texts := f.conflictEvents(n, "p-web"); slices.Contains(texts, "no more") {
			f.t.Errorf("while controllers restarted, host %d said %q", n, texts)
		}
	}

	for _, port := range []string{"p-web", "p-a"} {
		f.hosts[0].must("port", "disconnect", port)
		f.conflict(1, port, "")
	}
	f.static("fixed", "p-a on esx1 up", "free")
}

// rotatedByAll changes the root with steps at different controllers. Their etcds take in the new root one after the
// other before the old one goes, so that they have a majority all the time.
func (f *fleet) rotatedByAll(all [3]*realhost.Controller) {
	f.t.Helper()
	first, err := all[0].Root(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for i, step := range []api.RootStep{api.RootAnnounce, api.RootSwitch, api.RootFinish} {
		c := all[i]
		var refused error
		c.Await(string(step)+" is made", func() bool {
			root, err := c.Root(f.t.Context())
			if err != nil || len(root.Waiting) > 0 {
				return false
			}
			_, refused = c.RotateRoot(f.t.Context(), step, false)
			return refused == nil
		})
	}
	last, err := all[0].Root(f.t.Context())
	if err != nil || last.Stage != api.RootSteady || len(last.Roots) != 1 ||
		last.Roots[0].Fingerprint == first.Roots[0].Fingerprint {
		f.t.Fatalf("after the rotation: %+v, before: %+v, %v", last, first, err)
	}
	for _, c := range all { // its etcd has started twice: with both roots, and with the new one
		c.Await(c.Name+" goes by the new root alone", func() bool {
			return strings.Count(c.Log(), "etcd takes in the roots of the cluster") >= 2
		})
		if strings.Contains(c.Log(), "no majority") {
			f.t.Errorf("%s has lost the majority", c.Name)
		}
	}
	for _, c := range all {
		c.Await("all hosts are connected, by "+c.Name, func() bool { return len(where(c)) == 3 })
	}
	if out := all[1].Define(strings.Replace(portsText, "access: 10", "access: 11", 1)); len(out.Waiting) > 0 {
		f.t.Errorf("a change after the rotation: %+v", out)
	}
}

// status is how a controller answers who shows a token.
func (f *fleet) status(c *realhost.Controller, token string) string {
	f.t.Helper()
	host, _, _ := strings.Cut(c.Address, ":")
	out, err := f.network.Output("curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Authorization: Bearer "+
		token, "-H", "Content-Type: application/json", "-d", "{}",
		"https://"+host+":7443/heddle.controller.v1.FleetService/ListHosts")
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// revokedByAll revokes the token of a person and a host, each at a controller that they are not at: all refuse them,
// also after a restart.
func (f *fleet) revokedByAll(all [3]*realhost.Controller) {
	f.t.Helper()
	var token *api.NewToken
	asked := 0
	err := realhost.Again(f.t, func() (err error) { // its secret is in the answer alone
		asked++
		token, err = all[0].CreateToken(f.t.Context(), api.TokenTerms{Name: fmt.Sprint("ci", asked), Role: "admin"})
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, c := range all {
		c.Await("the token counts at "+c.Name, func() bool { return f.status(c, token.Token) == "200" })
	}
	if err := all[1].RevokeToken(f.t.Context(), token.ID); err != nil {
		f.t.Fatal(err)
	}
	at := where(all[0])["esx2"]
	i := slices.IndexFunc(all[:], func(c *realhost.Controller) bool { return c.Name == at })
	if i < 0 {
		f.t.Fatalf("esx2 is at %q", at)
	}
	if err := all[(i+1)%3].RemoveHost(f.t.Context(), "esx2"); err != nil {
		f.t.Fatal(err)
	}
	f.hosts[2].Await("its connection is cut", func() bool {
		m, err := f.hosts[2].Membership(f.t.Context())
		return err == nil && m.Connected == "" && strings.Contains(m.Error, "revoked")
	})
	all[i].End(syscall.SIGKILL)
	all[i].Start()
	for _, c := range all {
		c.Await("the token is refused at "+c.Name, func() bool { return f.status(c, token.Token) == "401" })
		c.Await("the host is gone from "+c.Name, func() bool { return len(where(c)) == 2 })
	}
	if m, err := f.hosts[2].Membership(f.t.Context()); err != nil || m.Connected != "" {
		f.t.Errorf("the host is connected to %s (%v)", m.Connected, err)
	}
}
