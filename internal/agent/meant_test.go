package agent

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	"heddle/internal/api"
	"heddle/internal/spec"
)

const meantHost = "0b7e6f3a-1111-4222-8333-444455556666"

// actOn makes a call of a move on a port, as a controller does that means the port of.
func actOn(ctx context.Context, r *rig, procedure, port string, of *api.PortIdentity) error {
	switch m := r.moveCommands(); procedure {
	case agentv1connect.PortServiceActivatePortProcedure:
		return r.commands.Activate(ctx, api.Activate{Port: port, Of: of})
	case agentv1connect.PortServiceMovePortProcedure:
		_, err := r.commands.Move(ctx, api.Move{Port: port, PortGroup: "other", Of: of})
		return err
	case agentv1connect.MoveServiceCancelMoveProcedure:
		return m.CancelMove(ctx, api.PortMoveOf{Port: port, Of: of})
	case agentv1connect.MoveServiceReleaseMovedPortProcedure:
		return m.ReleaseMovedPort(ctx, api.PortMoveOf{Port: port, Of: of})
	case agentv1connect.MoveServiceSilencePortProcedure:
		_, err := m.SilencePort(ctx, api.PortMoveOf{Port: port, Of: of})
		return err
	}
	_, err := r.moveCommands().CopyMovingPort(ctx, api.PortMoveOf{Port: port, Of: of})
	return err
}

// The port that a caller has looked at is replaced by another of its name before the call comes: it is refused, says
// whose the port is now, and changes nothing. The port that is meant passes.
func TestS173_ACallForAPortThatWasReplacedIsRefused(t *testing.T) {
	meant := api.PortIdentity{Host: meantHost, Switch: "lab", VM: strings.ToUpper(movingVM), Adapter: "net0",
		Device: "tap8"}
	bare := api.PortIdentity{Host: meantHost, Switch: "lab", Device: "tap0"}
	own := api.Connect{VM: movingVM, Adapter: "net0"}
	rows := map[string]struct {
		of   api.PortIdentity
		has  api.Connect
		says string
	}{
		"another VM": {meant, api.Connect{VM: foreignVM, Adapter: "net0"},
			"it is of adapter net0 of VM " + foreignVM},
		"another adapter": {meant, api.Connect{VM: movingVM, Adapter: "net1"}, "it is of adapter net1"},
		"nobody's":        {meant, api.Connect{}, "it is of no VM that is known now, and was of adapter net0"},
		"a VM's now":      {bare, own, "and was of no VM that is known"},
		"nobody's, another": {bare, api.Connect{Port: spec.Port{Device: "tap5"}},
			"its device is tap5 now, and was tap0"},
		"another switch": {api.PortIdentity{Host: meantHost, Switch: "dvs", VM: movingVM, Adapter: "net0"}, own,
			"it is on switch lab now, and was on dvs"},
		"another host": {api.PortIdentity{Host: "another", Switch: "lab", VM: movingVM, Adapter: "net0"}, own,
			"the call is for host another"},
	}
	calls := []string{agentv1connect.PortServiceActivatePortProcedure, agentv1connect.PortServiceMovePortProcedure,
		agentv1connect.MoveServiceCancelMoveProcedure, agentv1connect.MoveServiceReleaseMovedPortProcedure,
		agentv1connect.MoveServiceSilencePortProcedure, agentv1connect.MoveServiceCopyMovingPortProcedure}
	for _, call := range calls {
		for name, row := range rows {
			t.Run(call+"/"+name, func(t *testing.T) {
				r := replacedBy(t, row.has)
				before, waits := slices.Clone(r.state.Ports), slices.Clone(r.state.Waits)
				err := r.command(func(ctx context.Context) error { return actOn(ctx, r, call, "vm/eth0", &row.of) })
				if !invalid(err) || !strings.Contains(err.Error(), row.says) {
					t.Errorf("%v, want %q", err, row.says)
				}
				if !reflect.DeepEqual(r.state.Ports, before) || !reflect.DeepEqual(r.state.Waits, waits) {
					t.Errorf("ports %+v, waits %+v", r.state.Ports, r.state.Waits)
				}
			})
		}
	}
	r := replacedBy(t, own)
	for _, of := range []*api.PortIdentity{&meant, nil} {
		if err := r.command(func(ctx context.Context) error {
			return actOn(ctx, r, agentv1connect.PortServiceMovePortProcedure, "vm/eth0", of)
		}); err != nil {
			t.Errorf("the port that is meant by %+v: %v", of, err)
		}
	}
	err := r.command(func(ctx context.Context) error {
		_, err := r.commands.ConnectIncoming(ctx, api.Incoming{Host: "another", Force: true,
			Connect: api.Connect{VM: foreignVM, Adapter: "net0", Port: spec.Port{Name: "x", PortGroup: "web"}}})
		return err
	})
	if !invalid(err) || r.connected.port("x") != nil {
		t.Errorf("a port for another host: %v", err)
	}
}

// replacedBy is a host of the cluster whose port vm/eth0 is that one.
func replacedBy(t *testing.T, has api.Connect) *rig {
	t.Helper()
	r := newRig(t, base)
	r.commands.self = func() string { return meantHost }
	has.Name, has.PortGroup = "vm/eth0", "web"
	r.connects(t, has)
	r.settler.settle()
	return r
}

// connects connects a port by a command on the host, which has to succeed.
func (r *rig) connects(t *testing.T, q api.Connect) {
	t.Helper()
	err := r.command(func(ctx context.Context) error { _, err := r.commands.Connect(ctx, q); return err })
	if err != nil {
		t.Fatal(err)
	}
}

// Each call that a controller makes for a move says which host and whose port it means: a name alone is no identity.
func TestS173_EachCallOfAMoveSaysWhichPortItMeans(t *testing.T) {
	for _, file := range []protoreflect.FileDescriptor{agentv1.File_heddle_agent_v1_port_proto,
		agentv1.File_heddle_agent_v1_move_proto} {
		for s := range file.Services().Len() {
			methods := file.Services().Get(s).Methods()
			for m := range methods.Len() {
				method := methods.Get(m)
				if !api.OfMove("/" + string(method.Parent().FullName()) + "/" + string(method.Name())) {
					continue
				}
				of, host := method.Input().Fields().ByName("of"), method.Input().Fields().ByName("host")
				known, err := protoregistry.GlobalTypes.FindMessageByName("heddle.agent.v1.PortIdentity")
				if err != nil {
					t.Fatal(err)
				}
				whole := host != nil && method.Input().Fields().ByName("vm") != nil
				if !whole && (of == nil || of.Message() != known.Descriptor()) {
					t.Errorf("%s names a port by its name alone", method.FullName())
				}
			}
		}
	}
}
