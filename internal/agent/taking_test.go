package agent

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	"heddle/internal/api"
	"heddle/internal/host/hostdev"
	"heddle/internal/spec"
)

const foreignVM = "7f9619ff-8b86-d011-b42d-00c04fc96402"

// admitting is a host with a port of another guest, one of the moving guest that waits, and devices of all kinds.
func admitting(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, base)
	r.dev.nic("eno1", 1500)
	for name, d := range map[string]hostdev.Device{"eth0": {HostTraffic: true},
		"eth1": {Master: hostdev.Master{Name: "br0", Driver: "bridge"}}, "eth2": {}, "free": {}} {
		made := r.dev.nic(name, 1500)
		made.HostTraffic, made.Master = d.HostTraffic, d.Master
	}
	r.dev.past = map[string][]hostdev.Past{"eth2": {{Device: hostdev.Device{Name: "mv0"}}}}
	for _, p := range []api.Connect{
		{VM: foreignVM, Adapter: "net0", Port: spec.Port{Name: "db/eth0", PortGroup: "other", Device: "tap1"}},
		{VM: foreignVM, Adapter: "net1", Port: spec.Port{Name: "same/eth0", PortGroup: "other", Device: "tap2"}},
		{Port: spec.Port{Name: "nobodys", PortGroup: "other", Device: "tap3"}},
	} {
		r.connects(t, p)
	}
	r.settler.settle()
	return r
}

// Each call that a controller makes for a move is tried on a host where what it names is another's: it takes nothing,
// and the refusal says what is in the way.
func TestS113_CallsByAControllerTakeNothingFromOthers(t *testing.T) {
	coming := func(name, device string) func(context.Context, *rig) error {
		return func(ctx context.Context, r *rig) error {
			_, err := r.commands.ConnectIncoming(ctx, api.Incoming{Connect: api.Connect{VM: movingVM, Adapter: "net0",
				Port: spec.Port{Name: name, PortGroup: "web", Device: device}}, Force: true})
			return err
		}
	}
	rows := map[string]map[string]struct {
		does func(context.Context, *rig) error
		says string
	}{
		agentv1connect.PortServiceConnectIncomingPortProcedure: {
			"another guest's device":   {coming("vm/eth0", "tap1"), "port db/eth0 has it"},
			"nobody's device":          {coming("vm/eth0", "tap3"), "port nobodys has it"},
			"a declared port's device": {coming("vm/eth0", "pa"), "port a has it"},
			"another guest's name":     {coming("same/eth0", "free"), "port same/eth0 of another guest"},
			"a name that nobody's has": {coming("nobodys", "free"), "port nobodys of another guest"},
			"an uplink":                {coming("vm/eth0", "eno1"), "uplink u1 of switch lab"},
			"addresses of the host":    {coming("vm/eth0", "eth0"), "the host has addresses on it"},
			"a member of a bridge":     {coming("vm/eth0", "eth1"), "it is a member of bridge br0"},
			"below another device":     {coming("vm/eth0", "eth2"), "device mv0 is on top of it"},
		},
		agentv1connect.PortServiceActivatePortProcedure: {
			"another guest's port": {func(ctx context.Context, r *rig) error {
				return r.commands.Activate(ctx, api.Activate{Port: "db/eth0"})
			}, ""}, // which runs already
		},
		agentv1connect.PortServiceMovePortProcedure: {
			"a declared port": {func(ctx context.Context, r *rig) error {
				_, err := r.commands.Move(ctx, api.Move{Port: "a", Switch: "elsewhere", PortGroup: "web"})
				return err
			}, "is declared in"},
		},
		agentv1connect.MoveServiceCancelMoveProcedure: {
			"another guest's port": {func(ctx context.Context, r *rig) error {
				return r.moveCommands().CancelMove(ctx, api.PortMoveOf{Port: "db/eth0"})
			}, "does not wait for its guest"},
		},
	}
	var calls []string
	for _, file := range []protoreflect.FileDescriptor{agentv1.File_heddle_agent_v1_port_proto,
		agentv1.File_heddle_agent_v1_move_proto} {
		for s := range file.Services().Len() {
			methods := file.Services().Get(s).Methods()
			for m := range methods.Len() {
				method := methods.Get(m)
				if p := "/" + string(method.Parent().FullName()) + "/" + string(method.Name()); api.OfMove(p) {
					calls = append(calls, p)
				}
			}
		}
	}
	if have := slices.Sorted(maps.Keys(rows)); !slices.Equal(have, slices.Sorted(slices.Values(calls))) {
		t.Errorf("rows of %q, want one of each call of a move: %q", have, calls)
	}
	for call, list := range rows {
		for name, row := range list {
			t.Run(call+"/"+name, func(t *testing.T) {
				r := admitting(t)
				before, was := slices.Clone(r.state.Ports), slices.Clone(r.state.NICs)
				err := r.command(func(ctx context.Context) error { return row.does(api.ByController(ctx), r) })
				if row.says == "" && err != nil || row.says != "" && (!invalid(err) ||
					!strings.Contains(err.Error(), row.says)) {
					t.Errorf("%v, want %q", err, row.says)
				}
				if !reflect.DeepEqual(r.state.Ports, before) || !reflect.DeepEqual(r.state.NICs, was) {
					t.Errorf("ports %+v, before %+v", r.state.Ports, before)
				}
			})
		}
	}
}

// A guest that comes gets the device that nobody uses, or the one of its own adapter's port that stayed behind; a
// device that its hypervisor has yet to make is no obstacle.
func TestS113_AnIncomingPortTakesWhatIsItsOwn(t *testing.T) {
	for _, row := range []struct {
		name, device string
		stale        *spec.Port // a port of the same adapter
		remote       bool
	}{
		{"free", "free", nil, true},
		{"made later", "tap9", nil, true},
		{"its own under another name", "tap5", &spec.Port{Name: "old", PortGroup: "web", Device: "tap5"}, true},
		{"its own", "tap5", &spec.Port{Name: "vm/eth0", PortGroup: "web", Device: "tap5"}, true},
		{"somebody on the host", "eth1", nil, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := admitting(t)
			nic := api.Connect{VM: movingVM, Adapter: "net0"}
			if nic.Port = (spec.Port{}); row.stale != nil {
				nic.Port = *row.stale
				r.connects(t, nic)
			}
			nic.Port = spec.Port{Name: "vm/eth0", PortGroup: "web", Device: row.device}
			err := r.command(func(ctx context.Context) error {
				if row.remote {
					ctx = api.ByController(ctx)
				}
				_, err := r.commands.ConnectIncoming(ctx, api.Incoming{Connect: nic})
				return err
			})
			var own []string
			for _, p := range r.state.Ports {
				if p.Device == row.device {
					own = append(own, p.Name)
				}
			}
			if err != nil || !slices.Equal(own, []string{"vm/eth0"}) {
				t.Errorf("%v; ports with the device: %q", err, own)
			}
		})
	}
}

// Somebody on the host who prepares a port names its device: it is taken from nobody, but by a hook, whose guest has
// just been given it.
func TestS113_OnlyAHookTakesTheDeviceOfAGuestThatDied(t *testing.T) {
	r := admitting(t)
	q := api.Connect{VM: movingVM, Adapter: "net0", Port: spec.Port{Name: "vm/eth0", PortGroup: "web", Device: "tap1"}}
	err := r.command(func(ctx context.Context) error {
		_, err := r.commands.ConnectIncoming(ctx, api.Incoming{Connect: q})
		return err
	})
	if !invalid(err) || !strings.Contains(err.Error(), "port db/eth0 has it") || r.connected.port("db/eth0") == nil {
		t.Errorf("prepared by hand: %v", err)
	}
	err = r.command(func(ctx context.Context) error {
		err := r.commands.Expect(ctx, api.Expect{Guest: "vm"})
		if err == nil {
			_, err = r.commands.Reconnect(ctx, q)
		}
		return err
	})
	if w := r.state.WaitOf(id("vm/eth0")); err != nil || w == nil || r.connected.port("db/eth0") != nil {
		t.Errorf("prepared by a hook: %v, wait %+v", err, w)
	}
}
