package agent

import (
	"context"

	"heddle/internal/agent/migration"
	"heddle/internal/agent/part"
	"heddle/internal/agent/portstate"
	"heddle/internal/agent/state"
	"heddle/internal/agent/transport"
	"heddle/internal/api"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// newMigration returns the part that follows ports from host to host.
func newMigration(s *shared, cn *connected, ps *ports) *migration.Part {
	return migration.New(migration.Host{Reader: s.Reader, Loop: s.Loop, Log: s.log, Events: s.events,
		Complain: s.Complain, Records: &s.state.Travels, Save: ps.save, Wait: s.state.WaitOf,
		HasDevice: func(id plan.PortID) bool { return s.state.Of(id) != nil },
		Adapters: func() (list []migration.Adapter) {
			for _, n := range s.state.ConnectedNICs() {
				list = append(list, adapterOf(n))
			}
			return list
		},
		AdapterOf: func(port string) (migration.Adapter, bool) {
			n := s.state.NICOf(port)
			if n == nil {
				return migration.Adapter{}, false
			}
			return adapterOf(n), true
		},
		PortGroup: func(port string) string {
			if p := cn.port(port); p != nil {
				return p.PortGroup
			}
			return ""
		}})
}

func adapterOf(n *state.NIC) migration.Adapter {
	return migration.Adapter{VM: n.VM, Name: n.Adapter, Port: plan.PortID{Switch: n.Switch, Name: n.Port}}
}

// newCarrier returns what reads what belongs to ports, and gives it to them.
func newCarrier(s *shared, parts *part.Table, cn *connected, ps *ports, cg *changer, t *teaming) *portstate.Carrier {
	return portstate.New(portstate.Host{Reader: s.Reader, Loop: s.Loop, Complain: s.Complain, Dir: s.store.Dir(),
		Kernel: func() portstate.Kernel { return s.kernel }, Goods: &s.state.Goods,
		Parts: parts,
		Base:  func(id plan.PortID) observe.Base { return s.state.BaseOf(id) }, Wait: s.state.WaitOf,
		Own: cn.own, SetOwn: cn.setOwn, FitsOwn: ps.fitsOwn, Change: cg.change, Save: ps.save,
		Announce: t.announceMoved})
}

// openMigration prepares what hosts say to each other about moves.
func (a *Agent) openMigration(o Options) {
	out := transport.NewCaller(transport.CallerOptions{Identity: a.connection.Between})
	a.closers = append(a.closers, func() error { out.Close(); return nil })
	a.moving.Open(transport.New(transport.Options{Listen: o.MoveListen, Identity: a.connection.Between,
		Expect: a.moving.Expected, Take: a.moving.Take, First: a.connection.Local, Log: a.log}), out)
}

// moveCommands answer the calls about moves.
func (a *Agent) moveCommands() migration.Commands {
	return migration.NewCommands(a.moving, migration.Calls{NoPort: a.ports.noPort, Silence: a.waiting.Silence,
		Meant: func(port string, of *api.PortIdentity) error { return a.commands.meant().refuses(port, of) },
		Disconnect: func(ctx context.Context, port string, judge func(plan.PortID) error) error {
			return a.commands.disconnectIf(ctx, api.Disconnect{Port: port}, func(p spec.Port) error {
				return judge(plan.PortID{Switch: p.Switch, Name: p.Name})
			})
		}})
}
