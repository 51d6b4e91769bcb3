package fleet

import (
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// Whatever is wrong with the controllers, none of the commands that show a cluster says that all is well: each names
// what is wrong, and has a status of its own where a monitoring system runs it.
func TestS127_S128_S185_NoCommandSaysThatAllIsWellWhereControllersAreNot(t *testing.T) {
	testkit.Long(t, "kills controllers and waits for what the others notice")
	t.Parallel()
	f := newFleetSized(t, 2, ownConfig, "own1", "own2")
	all := f.controllers()
	names := []string{"esx0", "esx1"}
	for n, h := range f.hosts {
		f.controller.Join(h.Host, names[n], map[string]string{"rack": "a"})
	}
	f.controller.Define(fleetText)
	f.inState("esx0", api.HostUp)
	f.inState("esx1", api.HostUp)
	noticed := func(what string, is func(*api.FleetHosts) bool) {
		t.Helper()
		all[0].Await(what, func() bool {
			list, err := all[0].Hosts(t.Context())
			return err == nil && is(list)
		})
	}
	for _, fault := range []struct {
		name string
		make func()
		// says is what each of the commands names.
		says string
	}{
		{"a controller is down", func() {
			all[2].End(syscall.SIGKILL)
			noticed("a controller is missed", func(l *api.FleetHosts) bool { return len(l.Unreachable) == 1 })
			f.inState("esx0", api.HostUp)
			f.inState("esx1", api.HostUp)
		}, "controller3 does not answer"},
		{"the majority was lost a moment ago", func() {
			all[1].Freeze() // no connection ends, so that nobody notices it at once
		}, "may be old"},
		{"no majority", func() {
			all[1].End(syscall.SIGKILL)
			noticed("what is shown is marked", func(l *api.FleetHosts) bool { return l.Stale != "" })
		}, "controller2 does not answer"},
		{"a host is away", func() {
			all[1].Start()
			all[2].Start()
			noticed("all are there", func(l *api.FleetHosts) bool { return len(l.Unreachable) == 0 && l.Stale == "" })
			f.inState("esx0", api.HostUp)
			f.hosts[1].End(syscall.SIGKILL)
			f.inState("esx1", api.HostDisconnected)
		}, "esx1"},
	} {
		t.Run(fault.name, func(t *testing.T) {
			fault.make()
			f.namedByAll(t, fault.says)
		})
	}
}

// namedByAll holds the commands that show a cluster to naming a fault.
func (f *fleet) namedByAll(t *testing.T, says string) {
	t.Helper()
	for _, args := range [][]string{{"status"}, {"doctor"}, {"host", "list"}, {"advise"}} {
		out, errs, status := f.controller.Heddle(append(args, "--controller", f.controller.Socket())...)
		said := strings.Join(strings.Fields(out+errs), " ") // whatever the width of the lines
		if !strings.Contains(said, says) || strings.Contains(said, "all is well") ||
			strings.Contains(said, "No problems found") {
			t.Errorf("heddle %v does not say %q:\n%s%s", args, says, out, errs)
		}
		if advises := args[0] == "advise"; advises && status != 1 {
			t.Errorf("heddle %v has the status %d", args, status)
		}
	}
}
