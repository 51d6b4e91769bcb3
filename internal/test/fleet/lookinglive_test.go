package fleet

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// meteredText is the fleet's definition with metered ports.
var meteredText = strings.Replace(fleetText, "- {name: web, vlan: {access: 10}}",
	"- {name: web, vlan: {access: 10}, monitoring: {ipfix: true}}", 1)

// Live views and shows of one object look at all hosts: rates and flows while frames pass between two of them, and the
// port wherever it is.
func TestLookingAtTheFleet_LiveOnAllHosts(t *testing.T) {
	testkit.Long(t, "waits for rates; TestLookingAtTheFleet_PastEventsInOrder looks at all hosts")
	t.Parallel()
	f := newFleet(t)
	f.controller.Start()
	for n, h := range f.hosts {
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	if out := f.controller.Define(meteredText); len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	for n := range f.hosts {
		f.hosts[n].Up("uplink1")
		f.connect(n, 3, "p-web", "web")
	}
	f.connect(1, 4, "p-db", "db")
	f.allUp()
	watch, records, errs := f.watches("flows", "watch", "-o", "json")
	between := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	f.controller.Await("top shows the rates of both hosts", func() bool { return f.rated("top", "p-web", "rows") == 2 })
	f.controller.Await("flows top shows the flow on both hosts", func() bool {
		return f.rated("flows top", "p-web", "flows") == 2
	})
	out, _, status := f.controller.Heddle("flows", "list", "--by", "port-group")
	if status != 0 || !strings.Contains(out, "dvs     web") || !strings.Contains(out, "the sums are of all hosts") {
		t.Errorf("status %d\n%s", status, out)
	}
	f.whole("while they are looked at", between)

	f.showsObjects()
	f.hosts[0].must("port", "disconnect", "p-web") // by which its flows end
	f.hosts[1].must("port", "disconnect", "p-web")
	f.controller.Await("the records of both hosts came", func() bool {
		return strings.Contains(records.String(), `{"host":"esx0"`) && strings.Contains(records.String(), `{"host":"esx1"`)
	})
	f.hosts[1].End(syscall.SIGKILL)
	f.controller.Await("it says that the host is away", func() bool {
		return strings.Contains(errs.String(), "host esx1 does not answer")
	})
	if err := watch.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := watch.Wait(); err != nil {
		t.Errorf("an interrupted command: %v", err)
	}
	f.inState("esx1", api.HostDisconnected)
	out, gotErrs, status := f.controller.Heddle("port", "show", "p-db")
	if status != 1 || !strings.Contains(out, "stale: it was up") || !strings.Contains(gotErrs, "host esx1 does not") {
		t.Errorf("a port of a host that is away: %d\n%s%s", status, out, gotErrs)
	}
}

// watches starts a command that follows something.
func (f *fleet) watches(args ...string) (cmd *exec.Cmd, out, errs *watchedText) {
	f.t.Helper()
	cmd, out, errs = f.controller.Command(args...), &watchedText{}, &watchedText{}
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	return cmd, out, errs
}

// rated is how many hosts have a rate above 0 at a port of that name, in the list of a live view.
func (f *fleet) rated(view, port, list string) int {
	f.t.Helper()
	out, _, _ := f.controller.Heddle(append(strings.Fields(view), "--once", "-o", "json")...)
	var all map[string]json.RawMessage
	var rows []struct {
		Host, Port string
		Rates      struct{ Packets, PacketsIn, PacketsOut float64 }
	}
	if json.Unmarshal([]byte(out), &all) != nil || json.Unmarshal(all[list], &rows) != nil {
		f.t.Errorf("heddle %s: %s", view, out)
	}
	hosts := map[string]bool{}
	for _, r := range rows {
		if r.Port == port && r.Rates.Packets+r.Rates.PacketsIn+r.Rates.PacketsOut > 0 {
			hosts[r.Host] = true
		}
	}
	return len(hosts)
}

// showsObjects looks at one port, switch and port group, and at the accounts of all counters.
func (f *fleet) showsObjects() {
	f.t.Helper()
	for _, row := range []struct {
		args   string
		status int
		says   string
	}{
		{"port show p-db", 0, "esx1"}, {"port show esx0:p-web", 0, "esx0"},
		{"port show p-web", 2, "2 ports are called p-web: say which, as esx0:p-web or esx1:p-web"},
		{"switch show dvs", 0, "esx1  2 of 2    uplink1 (up"},
		{"port-group show web", 0, "the definition, revision"},
		{"uplink show esx1:uplink1 --switch dvs", 0, "eno2"},
		{"stats --check --switch dvs", 0, "ports and uplinks"},
	} {
		out, errs, status := f.controller.Heddle(strings.Fields(row.args)...)
		if status != row.status || !strings.Contains(out+errs, row.says) {
			f.t.Errorf("heddle %s: status %d\n%s%s", row.args, status, out, errs)
		}
	}
}
