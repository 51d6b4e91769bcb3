package smoke

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
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

// One VM on hosts of two controllers is noticed, with ephemeral ports too: both are marked and named, without a gap
// while the controllers restart one after the other. The hosts spread over the controllers again after that. The mark
// goes with one of the two guests.
func TestS78_OneVMOnHostsOfTwoControllersIsMarkedOnBoth(t *testing.T) {
	f, all := newThree(t)
	f.mustStartVM(0, 3, "p-web", "web")
	f.mustStartVM(0, 4, "p-a", "fixed")
	for port, vm := range map[string]int{"p-web": 3, "p-a": 4} {
		f.guest(1, vm+10, port) // another adapter: the guests can tell each other apart
		f.mustStartVM(1, vm, port, map[string]string{"p-web": "web", "p-a": "fixed"}[port])
	}
	marked := func() {
		t.Helper()
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
			t.Errorf("while controllers restarted, host %d said %q", n, texts)
		}
	}

	for _, port := range []string{"p-web", "p-a"} {
		f.hosts[0].must("port", "disconnect", port)
		f.conflict(1, port, "")
	}
	f.static("fixed", "p-a on esx1 up", "free")
}
