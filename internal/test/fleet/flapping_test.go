package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// A MAC behind a port of one host that goes to and fro to a port of another is named on both, with the other host and
// how often: by an event, at the port and by advise.
func TestS100_AMACThatFlapsBetweenHostsIsNamed(t *testing.T) {
	testkit.Long(t, "waits until a MAC has flapped")
	t.Parallel()
	f := newPortFleet(t)
	f.controller.Define(strings.Replace(portsText, "{name: web,", "{name: web, security: {forgedTransmits: accept, "+
		"macLearning: {enabled: true}},", 1))
	inner := [6]byte{2, 7, 0, 0, 0, 1}
	for n := range f.hosts {
		device := fmt.Sprintf("p-%d", n)
		f.guests[fmt.Sprintf("%s@%d", device, n)] = f.hosts[n].QuietlyIn(device, device, fleetMAC(n, 5))
		f.mustStartVM(n, 50+n, device, "web")
	}
	has := func(n int) bool {
		macs, err := f.hosts[n].MACs(t.Context())
		return err == nil && slices.ContainsFunc(macs, func(m api.MAC) bool {
			return m.MAC == plan.MAC(inner).String() && m.Port == fmt.Sprintf("p-%d", n)
		})
	}
	for turn := range 4 {
		n := turn % 2
		f.hosts[n].Await(fmt.Sprintf("turn %d: it is behind host %d alone", turn, n), func() bool {
			f.guests[fmt.Sprintf("p-%d@%d", n, n)].Send(cable.Frame([6]byte{255, 255, 255, 255, 255, 255}, inner, 0,
				"here"))
			return has(n) && !has(1-n)
		})
	}
	for n := range f.hosts {
		port, other := fmt.Sprintf("p-%d", n), fmt.Sprintf("esx%d", 1-n)
		var list []api.FlappingMAC
		f.hosts[n].Await("the flapping is named", func() bool {
			list = f.port(n, port).Flapping
			return len(list) == 1
		})
		if m := list[0]; m.MAC != plan.MAC(inner).String() || m.Segment != "10" || m.Times < 2 ||
			len(m.Elsewhere) != 1 || m.Elsewhere[0].Host != other || m.Elsewhere[0].Times < 2 ||
			m.Elsewhere[0].Port != fmt.Sprintf("p-%d", 1-n) {
			t.Errorf("host %d: %+v", n, m)
		}
		if out := f.hosts[n].must("events", "--no-follow", "--last", "-1", "--kind", "flapping"); !strings.Contains(out,
			"times on host "+other+" (port") {
			t.Errorf("host %d: no event names it:\n%s", n, out)
		}
		if out := f.hosts[n].must("port", "show", port); !strings.Contains(out, "flapping mac") {
			t.Errorf("host %d: the port does not show it:\n%s", n, out)
		}
		found, err := f.hosts[n].Advise(t.Context(), api.AdviseRequest{})
		if err != nil || !slices.ContainsFunc(found.Findings, func(one api.Finding) bool {
			return one.Rule == "mac-flaps"
		}) {
			t.Errorf("host %d: advise does not name it: %v", n, err)
		}
	}
}
