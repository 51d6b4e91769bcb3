package fleet

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
)

// roots are the fingerprints of the roots that count, the one that issues first.
func roots(r *api.Root) (list []string) {
	for _, c := range r.Roots {
		list = append(list, c.Fingerprint)
	}
	return list
}

// rotated makes a step of a rotation, and waits until no host is in the way of the next one. Meanwhile no host is ever
// without a connection.
func (f *fleet) rotated(step api.RootStep, want api.RootStage) *api.Root {
	f.t.Helper()
	root, err := f.controller.RotateRoot(f.t.Context(), step, false)
	if err != nil || root.Stage != want {
		f.t.Fatalf("%s: %+v, %v", step, root, err)
	}
	f.controller.Await("all hosts are ready for the next step", func() bool {
		list, err := f.controller.Hosts(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		for _, h := range list.Hosts {
			if h.State != api.HostUp {
				f.t.Errorf("after %s host %s is %s", step, h.Name, h.State)
			}
		}
		if root, err = f.controller.Root(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		return len(root.Waiting) == 0
	})
	return root
}

// The root is changed with two hosts connected: no host loses its controller, no frame is lost, and both come back to a
// controller that trusts the new root alone.
func TestTheRootIsRotatedWithoutAGap(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	carried := f.stream("p-own1@0", "p-own2@0", fleetMAC(0, 1), fleetMAC(0, 2))
	f.controller.Start()
	for n, h := range f.hosts {
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	f.controller.Define(fleetText)
	for n := range f.hosts {
		f.hosts[n].Up("uplink1")
		f.connect(n, 3, "p-web", "web")
	}
	between := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	first, err := f.controller.Root(t.Context())
	if err != nil || first.Stage != api.RootSteady || len(first.Roots) != 1 {
		t.Fatalf("at first: %+v, %v", first, err)
	}
	old := roots(first)[0]
	if _, err := f.controller.RotateRoot(t.Context(), api.RootSwitch, false); err == nil {
		t.Error("it is switched to a root that there is not")
	}

	// A host that is away is named, and keeps the next step from being made until it is back.
	f.hosts[1].End(syscall.SIGKILL)
	f.controller.Await("the host is away", func() bool { return f.controller.StateOf("esx1") == api.HostDisconnected })
	if _, err := f.controller.RotateRoot(t.Context(), api.RootAnnounce, false); err != nil {
		t.Fatal(err)
	}
	if _, err := f.controller.RotateRoot(t.Context(), api.RootSwitch, false); err == nil ||
		!strings.Contains(err.Error(), "esx1") {
		t.Errorf("it is switched without the host that is away: %v", err)
	}
	f.hosts[1].Start("")
	f.controller.Await("the host is back", func() bool { return f.controller.StateOf("esx1") == api.HostUp })
	announced := roots(f.rotated(api.RootAnnounce, api.RootAnnounced)) // again, which changes nothing
	if len(announced) != 2 || announced[0] != old {
		t.Errorf("announced: %v, the old one is %s", announced, old)
	}
	switched := roots(f.rotated(api.RootSwitch, api.RootSwitched))
	if !slices.Equal(switched, []string{announced[1], old}) {
		t.Errorf("switched: %v after %v", switched, announced)
	}
	// A change reaches hosts in the middle of it, and is active there.
	if out := f.controller.Define(strings.Replace(fleetText, "access: 20", "access: 30", 1)); len(out.Waiting) > 0 {
		t.Errorf("a change in the middle: %+v", out)
	}
	finished := roots(f.rotated(api.RootFinish, api.RootSteady))
	if !slices.Equal(finished, []string{announced[1]}) {
		t.Errorf("finished: %v", finished)
	}
	f.whole("between the hosts", between)
	f.whole("on the first host's own switch", carried)

	f.controller.End(syscall.SIGTERM)
	f.controller.Start()
	for n := range f.hosts {
		name := fmt.Sprintf("esx%d", n)
		f.controller.Await(name+" is up", func() bool { return f.controller.StateOf(name) == api.HostUp })
	}
}
