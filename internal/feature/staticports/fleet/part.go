package fleet

import (
	"context"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/controller/adapters"
	"heddle/internal/controller/capability"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/part"
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/store"
)

// Capability is static ports, for the list of a program.
func Capability() capability.Capability {
	return capability.Capability{Name: "staticports",
		Rules: access.Table{
			"ListStaticPorts":   {Needs: []roles.Permission{roles.View}, Judged: true},
			"ReleaseStaticPort": {Needs: []roles.Permission{roles.Operate}, Judged: true, Audit: true},
			"SettleStaticPort":  {Needs: []roles.Permission{roles.Operate}, Judged: true, Audit: true},
		},
		Kinds: []capability.Kind{
			{Name: store.KindPorts, Bound: "as many ports as port groups have"},
			{Name: definition.PortWorkKey().Kind, Unread: true,
				Bound: "one, of the port groups whose static ports end; of 256 KiB at most"},
		},
		New: func(d capability.Deps) []capability.Part {
			p := New(d)
			return []capability.Part{p.bindings, p}
		}}
}

// Ports are the static ports at a controller.
type Ports struct {
	capability.Deps
	bindings *Bindings
	// turns are those of the hosts' claims.
	turns *turns
}

// New has no ports yet.
func New(d capability.Deps) *Ports { return &Ports{d, NewBindings(d.Log), newTurns(d.Log)} }

// Register implements capability.Server.
func (p *Ports) Register(s *connect.Server) {
	controllerv1connect.RegisterStaticPortServiceHandler(s, p)
}

// keeper makes the static ports of port groups what the definition says.
func (p *Ports) keeper() definition.PortKeeper {
	return definition.PortKeeper{Store: p.Store, Log: p.Log}
}

// Run implements capability.Runner: it does what another controller has left undone.
func (p *Ports) Run(ctx context.Context) { p.keeper().Follow(ctx, p.Look) }

// Take implements capability.Taker: the settings of static ports are part of what their hosts are to have.
func (p *Ports) Take(events []store.Event, anew bool) map[string]bool {
	changed := p.bindings.Take(events, anew)
	p.Adapters.Judge(changed.Adapters)
	return changed.Hosts
}

// Of implements adapters.Bindings.
func (p *Ports) Of(a part.Adapter) *adapters.Binding { return p.bindings.Of(a) }

// GroupsOn implements adapters.Bindings.
func (p *Ports) GroupsOn(host string) map[string]string { return p.bindings.GroupsOn(host) }

// Port finds a bound port by its id; nil for none.
func (p *Ports) Port(id string) *adapters.Binding { return p.bindings.Port(id) }

// Serve implements part.Servant.
func (p *Ports) Serve(ctx context.Context, id string, c *part.Conn, m *controllerv1.FollowSliceRequest) {
	p.claims(ctx, id, c, m.GetClaims())
}

// Change implements capability.Changer.
func (p *Ports) Change(w capability.World) capability.Change {
	return capability.Change{Judge: Sizes{p, w}, Work: Work{p.keeper()}}
}
