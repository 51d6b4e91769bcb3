package agent

import (
	"context"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// A device that was free when a controller announced the guest, or was yet to be made, has become the host's own by the
// time when it is there: the port does not get it, and says why in the words of the refusal. It gets the device once
// the host has no use for it, and keeps it whatever the host does with it then.
func TestS174_TheDeviceOfAnArrivingPortIsJudgedAgainWhenItIsBound(t *testing.T) {
	for name, row := range map[string]struct {
		use  func(r *rig, d *hostdev.Device)
		free func(r *rig, d *hostdev.Device)
		says string
	}{
		"addresses": {func(_ *rig, d *hostdev.Device) { d.HostTraffic = true },
			func(_ *rig, d *hostdev.Device) { d.HostTraffic = false }, "the host has addresses on it"},
		"a VRF": {func(_ *rig, d *hostdev.Device) { d.Master = hostdev.Master{Name: "mgmt", Driver: "vrf"} },
			func(_ *rig, d *hostdev.Device) { d.Master = hostdev.Master{} }, "it is a member of vrf mgmt"},
		"a device on top": {func(r *rig, _ *hostdev.Device) {
			r.dev.past = map[string][]hostdev.Past{"tap9": {{Device: hostdev.Device{Name: "mv0"}}}}
		}, func(r *rig, _ *hostdev.Device) { r.dev.past = nil }, "device mv0 is on top of it"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, base)
			coming := func(ctx context.Context) error {
				q := api.Connect{VM: movingVM, Adapter: "net0",
					Port: spec.Port{Name: "vm/eth0", PortGroup: "web", Device: "tap9"}}
				_, err := r.commands.ConnectIncoming(api.ByController(ctx), api.Incoming{Force: true, Connect: q})
				return err
			}
			if err := r.command(coming); err != nil {
				t.Fatal(err)
			}
			r.settler.settle()
			d := r.dev.veth("tap9", "52:54:00:00:00:09")
			row.use(r, d)
			r.settler.settle()
			why := r.Active().Problems[id("vm/eth0")]
			if why.Code != problem.DeviceInUse || !strings.HasSuffix(why.Text(), row.says+
				"; say which device its guest gets here (--device)") || r.state.Of(id("vm/eth0")) != nil {
				t.Errorf("%+v: %s; held %+v", why, why, r.state.Of(id("vm/eth0")))
			}
			row.free(r, d)
			r.settler.settle()
			if h := r.state.Of(id("vm/eth0")); h == nil || h.Index != d.Index {
				t.Fatalf("a free device is not taken: %v", r.Active().Problems[id("vm/eth0")])
			}
			row.use(r, d)
			r.settler.settle()
			if r.state.Of(id("vm/eth0")) == nil {
				t.Error("a device that the guest has is taken from it")
			}
		})
	}
}

// A controller that says that the guest runs, while its port has no device, gets it none of the host's own thereby. Who
// connects the port on the host itself does.
func TestS174_AGuestThatIsSaidToRunGetsNoDeviceOfTheHost(t *testing.T) {
	r := newRig(t, base)
	q := api.Connect{VM: movingVM, Adapter: "net0", Port: spec.Port{Name: "vm/eth0", PortGroup: "web", Device: "tap9"}}
	steps := []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := r.commands.ConnectIncoming(api.ByController(ctx), api.Incoming{Force: true, Connect: q})
			return err
		},
		func(ctx context.Context) error {
			return r.commands.Activate(api.ByController(ctx), api.Activate{Port: "vm/eth0"})
		},
	}
	for _, step := range steps {
		if err := r.command(step); err != nil {
			t.Fatal(err)
		}
		r.settler.settle()
	}
	r.dev.veth("tap9", "52:54:00:00:00:09").HostTraffic = true
	r.settler.settle()
	if why := r.Active().Problems[id("vm/eth0")]; why.Code != problem.DeviceInUse || r.state.Of(id("vm/eth0")) != nil {
		t.Errorf("%+v; held %+v", why, r.state.Of(id("vm/eth0")))
	}
	r.connects(t, q)
	r.settler.settle()
	if r.state.Of(id("vm/eth0")) == nil {
		t.Errorf("connected on the host: %+v", r.Active().Problems[id("vm/eth0")])
	}
}
