package libvirt

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/plan/problem"
)

const otherUUID = "5e0c3a1e-1111-4222-8333-0000000000ff"

// A domain's start and end remove its own ports, by its UUID: not those of a container or of another guest that has its
// name, nor any port at all where the domain does not use Heddle.
func TestS150_ADomainRemovesItsOwnPortsAlone(t *testing.T) {
	strangers := []api.Port{
		{Name: "vm1/eth0", Device: "va", VM: otherUUID, Owner: "lxc/vm1", Origin: api.FromRun},
		{Name: "vm1/net7", Device: "vnet7", VM: otherUUID, ReasonCode: problem.OwnerAwaited, Origin: api.FromRun},
		{Name: "vm1/hand", Device: "tap9", Origin: api.FromRun},
	}
	for _, operation := range []string{"prepare", "start", "started", "reconnect", "attach", "stopped", "release"} {
		for wants, own := range map[string]bool{both: true, "": false} {
			t.Run(fmt.Sprintf("%s, uses Heddle: %v", operation, own), func(t *testing.T) {
				f := &fakeAgent{ports: slices.Clone(strangers)}
				if own {
					f.ports = append(f.ports, api.Port{Name: "vm1/net9", Device: "vnet9",
						VM: strings.ToUpper(runningUUID), Origin: api.FromRun})
				}
				if _, err := f.run(operation, running("vm1", wants), false); err != nil {
					t.Fatal(err)
				}
				for _, p := range strangers {
					if !slices.ContainsFunc(f.ports, func(o api.Port) bool { return o.Name == p.Name }) {
						t.Errorf("port %s of %s is gone: %q", p.Name, p.VM, f.did)
					}
				}
				if !own && len(f.did) > 0 {
					t.Errorf("a domain that does not use Heddle did %q", f.did)
				}
				ends := slices.Contains([]string{"start", "reconnect", "attach", "stopped", "release"}, operation)
				if own && ends != slices.Contains(f.did, "-vm1/net9") {
					t.Errorf("its own port: %q", f.did)
				}
			})
		}
	}
}

// A domain that was renamed is the same by its UUID: the port that is left under its former name goes when it starts.
// One that runs under the other name, as during a migration within the host, stays.
func TestS150_ARenamedDomainFindsItsPort(t *testing.T) {
	left := api.Port{Name: "before/net0", Device: "vnet4", VM: runningUUID, ReasonCode: problem.OwnerAwaited,
		Origin: api.FromRun}
	runs := left
	runs.Name, runs.ReasonCode = "runs/net0", ""
	f := &fakeAgent{ports: []api.Port{left, runs}}
	if _, err := f.run("start", running("vm1", both), false); err != nil ||
		!slices.Equal(f.did, []string{"-before/net0", "+vm1/net0", "+vm1/net1"}) {
		t.Errorf("start: %v, did %q", err, f.did)
	}
	if _, err := f.run("stopped", running("vm1", both), false); err != nil ||
		!slices.Equal(f.did, []string{"-vm1/net0", "-vm1/net1"}) {
		t.Errorf("stopped: %v, did %q", err, f.did)
	}
}

// A domain that ends while no agent answers leaves a note, which its next start takes back.
func TestS151_ADomainThatEndsUnheardLeavesANote(t *testing.T) {
	var notes []string
	f := &fakeAgent{down: fmt.Errorf("%w here", api.ErrNoAgent)}
	for _, c := range []struct{ operation, wants, want string }{
		{"stopped", both, runningUUID + " true"}, {"stopped", "", ""}, {"start", both, runningUUID + " false"},
		{"prepare", both, ""},
	} {
		notes = nil
		h := Hook{Agent: f, Release: func(string) error { return nil }, FailOpen: true, Warn: func(string, ...any) {},
			Ended: func(uuid string, ended bool) error {
				notes = append(notes, fmt.Sprint(uuid, " ", ended))
				return nil
			}}
		err := h.Run(t.Context(), c.operation, strings.NewReader(running("vm1", c.wants)))
		if got := strings.Join(notes, ", "); err != nil || got != c.want {
			t.Errorf("%s, %q: notes %q, want %q; %v", c.operation, c.wants, got, c.want, err)
		}
	}
}
