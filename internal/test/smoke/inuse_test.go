package smoke

import (
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
)

// withoutWeb is the fleet's definition without a port group that guests use.
var withoutWeb = strings.Replace(fleetText, "  - {name: web, vlan: {access: 10}}\n", "", 1)

// A port group in use, also on a host that is away, is removed only by force. The hosts that use it go on forwarding
// and are named, and follow again when their guests have moved.
func TestS103_AHostKeepsAPortGroupThatIsRemovedByForce(t *testing.T) {
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
	if refused != "" || len(out.Waiting) != 2 {
		t.Errorf("by force: %s, %+v", refused, out)
	}
	f.hosts[1].Start("")
	for n, name := range []string{"esx0", "esx1"} {
		f.inState(name, api.HostOutOfSync)
		f.has("the problem", strings.Join(f.host(name).Problems, "\n"), "p-web", "web")
		if got := f.vlan(n, "p-web"); got != "access 10" {
			t.Errorf("%s has VLAN %s", name, got)
		}
	}
	f.whole("between the hosts", between)
	for n, name := range []string{"esx0", "esx1"} {
		f.hosts[n].must("port", "move", "p-web", "--port-group", "db")
		f.inState(name, api.HostUp)
		f.hosts[n].up("p-web")
	}
	f.reaches("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
}
