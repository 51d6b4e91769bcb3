package agent

import (
	"context"
	"slices"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/abi"
	"heddle/internal/agent/state"
	"heddle/internal/observe/event"
	"heddle/internal/spec"
)

const (
	conflictVM = "6f9619ff-8b86-4011-b42d-000000000001"
	otherVM    = "6f9619ff-8b86-4011-b42d-000000000002"
)

// newConflictRig is a host with the conflict ports of two VMs, in a port group whose ports controllers bind. The first
// one's device is tap0.
func newConflictRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, base)
	r.dev.veth("tap0", "02:00:00:00:00:01")
	r.dev.veth("tap1", "02:00:00:00:00:02")
	for vm, port := range map[string]spec.Port{
		conflictVM: {Name: "one", PortGroup: "web", Device: "tap0"},
		otherVM:    {Name: "two", PortGroup: "web", Device: "tap1"},
	} {
		if err := r.connect(port); err != nil {
			t.Fatal(err)
		}
		r.state.PutNIC(state.NIC{VM: vm, Adapter: "net0", Port: port.Name, Switch: "lab", PortGroup: "web", ID: "17",
			Conflict: "bound on host esx2"}, abi.MaxPorts)
	}
	defined := parse(t, base)
	defined.Switches[0].PortGroups[0].Binding = spec.Elastic
	r.follows(defined)
	return r
}

// claims are the ports that the host wants to claim.
func (r *rig) claims() (vms []string) {
	r.t.Helper()
	err := r.command(func(ctx context.Context) error {
		list, err := r.commands.statics.Unsettled(ctx)
		for _, q := range list {
			vms = append(vms, q.GetVm())
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Sort(vms)
	return vms
}

// A port whose device has gone has no guest here, so it can't be in conflict about one: the mark ends, once, is told
// and saved, and the port is not claimed. That of a port with a device stays. When the device is back, it is claimed
// again.
func TestS78_AConflictEndsWithThePortsDevice(t *testing.T) {
	r := newConflictRig(t)
	if got := r.claims(); !slices.Equal(got, []string{conflictVM, otherVM}) {
		t.Errorf("with both devices: claims for %q", got)
	}
	if n := r.state.NIC(conflictVM, "net0"); n.Conflict == "" || len(r.told(event.Conflict)) > 0 {
		t.Errorf("a port with a device is in conflict no more: %+v", n)
	}

	tap := r.dev.byName["tap0"]
	delete(r.dev.byName, "tap0")
	for range 2 {
		if got := r.claims(); !slices.Equal(got, []string{otherVM}) {
			t.Errorf("without the device: claims for %q", got)
		}
		saved := r.saved()
		if n := saved.NIC(conflictVM, "net0"); n == nil || n.Conflict != "" || n.ID != "17" {
			t.Errorf("what is saved of it: %+v", n)
		}
		if n := saved.NIC(otherVM, "net0"); n == nil || n.Conflict == "" {
			t.Errorf("what is saved of the other one: %+v", n)
		}
		told := r.told(event.Conflict)
		if len(told) != 1 || told[0].Text != "port one is in conflict no more" {
			t.Errorf("told: %+v", told)
		}
	}
	if r.commands.statics.Appeared() {
		t.Error("the device is said to be back")
	}

	r.dev.byName["tap0"] = tap
	if !r.commands.statics.Appeared() {
		t.Error("the device is not said to be back")
	}
	if got := r.claims(); !slices.Equal(got, []string{conflictVM, otherVM}) {
		t.Errorf("with both devices again: claims for %q", got)
	}
}

// A controller's answer that comes when the device has gone makes no conflict of it.
func TestS78_AnAnswerForAPortWithoutADeviceMakesNoConflict(t *testing.T) {
	r := newConflictRig(t)
	delete(r.dev.byName, "tap0")
	if got := r.claims(); !slices.Equal(got, []string{otherVM}) {
		t.Errorf("without the device: claims for %q", got)
	}
	for _, vm := range []string{conflictVM, otherVM} {
		err := r.command(func(ctx context.Context) error {
			return r.commands.statics.Settled(ctx, &controllerv1.PortClaim{Switch: "lab", PortGroup: "web", Vm: vm,
				Adapter: "net0"}, &controllerv1.PortAnswer{Refused: "bound on host esx3", Conflict: true})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := r.state.NIC(conflictVM, "net0"); n.Conflict != "" {
		t.Errorf("the port without a device: %q", n.Conflict)
	}
	if n := r.state.NIC(otherVM, "net0"); n.Conflict != "bound on host esx3" {
		t.Errorf("the other one: %q", n.Conflict)
	}
}
