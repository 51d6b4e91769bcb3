package agent

import (
	"slices"
	"testing"

	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// again makes the device anew with the same name and index.
func (r *rig) again(name string) {
	r.t.Helper()
	old := r.dev.byName[name]
	d := r.dev.veth(name, old.Peer.MAC.String())
	d.Index, d.Born, d.MAC = old.Index, old.Born+1, plan.MAC{2, 7, 7, 7, 7, byte(old.Born + 1)}
	r.dev.ipv6Off[name] = false
	r.dev.changes = nil
}

func TestADeviceMadeAnewUnderItsNameAndIndexIsSetUp(t *testing.T) {
	want := []string{"ipv6 pa false", "up pa true"}
	t.Run("while the agent runs", func(t *testing.T) {
		r := newRig(t, base)
		r.dev.veth("pa", "02:00:00:00:00:0a")
		r.settler.settle()
		n := len(r.kernel.applied)
		r.again("pa")
		r.settler.settle()
		if !slices.Equal(r.dev.changes, want) || len(r.kernel.applied) != n+1 {
			t.Errorf("done %v, %d plans", r.dev.changes, len(r.kernel.applied)-n)
		}
		if len(r.state.Released) != 0 || !r.state.Of(id("a")).WasIPv6 {
			t.Errorf("state %+v", r.state)
		}
	})
	t.Run("while it was away", func(t *testing.T) {
		r := newRig(t, base)
		r.dev.veth("pa", "02:00:00:00:00:0a")
		r.settler.settle()
		r.again("pa")
		r.kernel.lost = true
		if err := r.restart(base); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.dev.changes, want) {
			t.Errorf("done %v", r.dev.changes)
		}
	})
}

func TestADeviceThatLostItsAttachmentIsPreparedAgainAndGivenBackAsItWas(t *testing.T) {
	r := newRig(t, base)
	d := r.dev.veth("pa", "02:00:00:00:00:0a")
	d.MAC = plan.MAC{2, 7, 7, 7, 7, 7}
	r.settler.settle()
	r.dev.changes = nil
	r.kernel.lost = true
	if err := r.restart(base); err != nil {
		t.Fatal(err)
	}
	if h := r.state.Of(id("a")); h.WasUp || !h.WasIPv6 || !h.Prepared {
		t.Errorf("held %+v", h)
	}
}

func TestAnAddressThatChangedOnAnAttachedDeviceIsNoOtherDevice(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("pa", "02:00:00:00:00:0a").MAC = plan.MAC{2, 7, 7, 7, 7, 7}
	r.settler.settle()
	r.dev.byName["pa"].MAC = plan.MAC{2, 8, 8, 8, 8, 8}
	r.dev.changes = nil
	if err := r.restart(base); err != nil || len(r.dev.changes) != 0 {
		t.Errorf("done %v, %v", r.dev.changes, err)
	}
}

// After a reboot devices have other indexes, in another order; what is remembered of the old indexes must not be
// applied to them.
func TestARebootBringsPortsBackAsTheirDevicesAppear(t *testing.T) {
	r := newRig(t, base)
	r.dev.nic("eno1", 1500)
	r.dev.veth("pa", "02:00:00:00:00:0a")
	r.dev.veth("pb", "02:00:00:00:00:0b")
	c := r.dev.veth("pc", "02:00:00:00:00:0c")
	if err := r.connect(spec.Port{Name: "c", PortGroup: "web", Device: "pc"}); err != nil {
		t.Fatal(err)
	}
	if err := r.block("a", true); err != nil {
		t.Fatal(err)
	}
	r.settler.settle()
	numbers := map[string]uint32{}
	for _, name := range []string{"a", "b", "c"} {
		numbers[name] = planned(r.Active().Plan, name).Number
	}
	oldIndex := c.Index
	r.state.Place = "another boot 1"
	if err := r.store.Save(r.state); err != nil {
		t.Fatal(err)
	}
	r.dev, r.kernel = newFakeDevices(), &fakeKernel{}
	if err := r.restart(base); err != nil {
		t.Fatal(err)
	}
	if n := len(r.kernel.last().Attachments) + len(r.state.Held) + len(r.state.Released); n != 0 ||
		len(r.dev.changes) != 0 {
		t.Fatalf("before any device is there: %+v, done %v", r.state, r.dev.changes)
	}
	for i, step := range []struct{ device, mac, port string }{{"pc", "02:00:00:00:00:0c", "c"},
		{"pb", "02:00:00:00:00:0b", "b"}, {"pa", "02:00:00:00:00:0a", "a"}} {
		t.Run(step.device, func(t *testing.T) {
			if i == 1 { // somebody else's device has the index that pc had
				r.dev.byName["other"] = &hostdev.Device{Index: oldIndex, Name: "other", Kind: hostdev.Veth}
			}
			if i == 1 && r.dev.next < oldIndex {
				r.dev.next = oldIndex
			}
			r.dev.veth(step.device, step.mac)
			r.settler.settle()
			at := r.kernel.last().Attachments
			if len(at) != i+1 || at[id(step.port)].Ifindex != r.dev.byName[step.device].Index {
				t.Errorf("with %s: attachments %+v", step.device, at)
			}
			if got := planned(r.Active().Plan, step.port).Number; got != numbers[step.port] {
				t.Errorf("port %s had number %d, has %d", step.port, numbers[step.port], got)
			}
		})
	}
	want := []string{"ipv6 pc false", "up pc true", "ipv6 pb false", "up pb true", "ipv6 pa false", "up pa true"}
	if !slices.Equal(r.dev.changes, want) {
		t.Errorf("done %v, want %v", r.dev.changes, want)
	}
	if !planned(r.kernel.last().Plan, "a").Policy.Blocked.V || len(r.saved().Ports) != 1 || len(r.saved().Held) != 3 {
		t.Errorf("state %+v", r.saved())
	}
}
