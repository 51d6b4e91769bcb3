package fleet

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// withoutWeb is the fleet's definition without a port group that guests use, and with another VLAN for one that stays.
var withoutWeb = strings.NewReplacer("  - {name: web, vlan: {access: 10}}\n", "", "access: 20", "access: 25").
	Replace(fleetText)

// withoutSwitch is a definition without the fleet's switch.
const withoutSwitch = `
switches:
- {name: spare, uplinks: [{name: uplink1}], portGroups: [{name: none}]}
`

// otherSwitch is one whose switch takes the device that the fleet's switch has.
var otherSwitch = strings.Replace(fleetText, "dvs", "other", 2)

// keeps awaits that a host has a version active and reports that it keeps a port group for those ports.
func (f *fleet) keeps(n int, revision int64, group, ports string) {
	f.t.Helper()
	name := fmt.Sprintf("esx%d", n)
	want := fmt.Sprintf("keeps port group %s that the definition lacks: %s", group, ports)
	var h api.FleetHost
	f.controller.Await(name+" "+want, func() bool {
		h = f.host(name)
		return h.State == api.HostWarning && strings.Contains(strings.Join(h.Problems, "\n"), want)
	})
	if h.Revision < revision {
		f.t.Errorf("%s has revision %d active, want %d: %v", name, h.Revision, revision, h.Problems)
	}
}

// follows awaits that a host has all of the definition active, and keeps nothing beside it.
func (f *fleet) follows(n int) {
	f.t.Helper()
	f.inState(fmt.Sprintf("esx%d", n), api.HostUp)
	if m, err := f.hosts[n].Membership(f.t.Context()); err != nil || len(m.Kept) > 0 {
		f.t.Errorf("host %d keeps %+v (%v)", n, m.Kept, err)
	}
}

// A port group in use, also on a host that is away, is removed only by force. The hosts that use it go on with it, take
// the rest of the definition, and are named. It is for the ports that had it, which may also end and begin again.
func TestS103_AHostKeepsAPortGroupThatIsRemovedByForce(t *testing.T) {
	testkit.Long(t, "has hosts that are away and ports that end and begin again")
	t.Parallel()
	f := newFleet(t)
	f.controller.Start()
	for n, name := range []string{"esx0", "esx1"} {
		f.controller.Join(f.hosts[n].Host, name, map[string]string{"rack": "a"})
	}
	f.controller.Define(fleetText)
	for n := range f.hosts {
		f.connect(n, 3, "p-web", "web")
	}
	f.reported("p-web")
	f.connect(0, 4, "p-db", "db")
	between := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	f.hosts[1].End(syscall.SIGTERM)
	f.inState("esx1", api.HostDisconnected)
	_, refused := f.tries(api.Define{Content: withoutWeb})
	f.has("the refusal", refused, "port group dvs/web is in use on host esx0, by p-web",
		"port group dvs/web is in use on host esx1, by p-web", "--force")
	f.exchange(func() {}) // the controller that starts again has not heard of the host that is away
	f.inState("esx0", api.HostUp)
	_, refused = f.tries(api.Define{Content: withoutWeb})
	f.has("the refusal", refused, "port group dvs/web may be in use on host esx1, which is not connected")

	out, refused := f.tries(api.Define{Content: withoutWeb, Force: true})
	if refused != "" || len(out.Waiting) != 1 {
		t.Fatalf("by force: %s, %+v", refused, out)
	}
	f.hosts[1].Start("")
	for n := range f.hosts {
		f.keeps(n, out.Revision, "dvs/web", "1 port (p-web)")
		if got := f.vlan(n, "p-web"); got != "access 10" {
			t.Errorf("host %d has VLAN %s", n, got)
		}
	}
	if got := f.vlan(0, "p-db"); got != "access 25" {
		t.Errorf("the rest of the definition is not active: VLAN %s", got)
	}
	list, err := f.controller.Ports(t.Context(), api.FleetPortQuery{PortGroup: "web"})
	if err != nil || len(list) != 2 {
		t.Errorf("the ports in it are listed as %+v, %v", list, err)
	}
	f.hosts[1].End(syscall.SIGKILL) // a kept port group outlives its agent
	f.hosts[1].Start("")
	f.hosts[1].Up("p-web")
	f.whole("between the hosts", between)
	f.onlyForItsPorts()

	for n := range f.hosts {
		f.hosts[n].must("port", "move", "p-web", "--port-group", "db")
		f.follows(n)
	}
	f.reaches("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	if err := f.hosts[0].Heddle("port", "move", "p-web", "--port-group", "web"); err == nil {
		t.Error("a port that has left the port group comes back to it")
	}
	f.withoutTheSwitch()
}

// onlyForItsPorts makes sure that a kept port group is for the ports that have it alone, also when they end and begin
// again.
func (f *fleet) onlyForItsPorts() {
	f.t.Helper()
	f.guest(1, 5, "p-new")
	stranger := []string{"port", "connect", "p-new", "--switch", "dvs", "--port-group", "web", "--device", "p-new"}
	err := f.hosts[1].Heddle(stranger...)
	if err == nil || !strings.Contains(err.Error(), "keeps it for other ports alone (p-web)") {
		f.t.Errorf("a new port in a kept port group: %v", err)
	}
	f.guest(0, 5, "p-again")
	f.hosts[0].must("port", "disconnect", "p-web")
	f.follows(0)
	if err := f.hosts[0].Heddle("port", "connect", "p-again", "--switch", "dvs", "--port-group", "web", "--device",
		"p-again"); err == nil || !strings.Contains(err.Error(), "no such port group") {
		f.t.Errorf("a new port in a port group that no port uses any more: %v", err)
	}
	f.hosts[0].must("port", "connect", "p-web", "--switch", "dvs", "--port-group", "web", "--device", "p-web")
	f.hosts[0].Up("p-web")
	f.keeps(0, 0, "dvs/web", "1 port (p-web)")
}

// withoutTheSwitch takes the whole switch away by force: the hosts keep it with what their ports use, until another
// switch wants its device, which the host then refuses.
func (f *fleet) withoutTheSwitch() {
	f.t.Helper()
	between := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	out, refused := f.tries(api.Define{Content: withoutSwitch, Force: true})
	if refused != "" || len(out.Waiting) > 0 {
		f.t.Fatalf("without the switch: %s, %+v", refused, out)
	}
	f.keeps(0, out.Revision, "dvs/db", "2 ports (p-db, p-web)")
	f.keeps(1, out.Revision, "dvs/db", "1 port (p-web)")
	if _, refused = f.tries(api.Define{Content: otherSwitch, Force: true}); refused != "" {
		f.t.Fatal(refused)
	}
	for n := range f.hosts {
		name := fmt.Sprintf("esx%d", n)
		f.inState(name, api.HostOutOfSync)
		f.has("the problem", strings.Join(f.host(name).Problems, "\n"), "eno2", "port group dvs/db")
	}
	f.whole("on a switch that is kept", between)
	f.hosts[1].must("port", "disconnect", "p-web")
	f.follows(1)
	f.hosts[0].must("port", "disconnect", "p-web")
	f.hosts[0].must("port", "disconnect", "p-db")
	f.follows(0)
}
