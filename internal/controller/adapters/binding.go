package adapters

import (
	"strings"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
	"heddle/internal/platform/store"
)

// Bindings are the static ports that adapters have, which a capability of the controller keeps.
type Bindings interface {
	// Of is the port of an adapter; nil for none.
	Of(part.Adapter) *Binding
	// GroupsOn are the port groups of the ports that are bound on a host, by the ports' ids.
	GroupsOn(host string) map[string]string
	// Rebind binds a port on another host, by the generation with which its guest runs there. It is called beside all
	// else, and may take its time.
	Rebind(b *Binding, host, name string, generation uint64)
}

// none are the bindings where no capability keeps static ports.
type none struct{}

func (none) Of(part.Adapter) *Binding                { return nil }
func (none) GroupsOn(string) map[string]string       { return nil }
func (none) Rebind(*Binding, string, string, uint64) {}

// Binding is a static port that is bound. It does not change: a change of the port makes another one.
type Binding struct {
	ID, Group string
	Adapter   part.Adapter
	Host, MAC string
	// Generation is that with which it came there; 0 where the host claimed it.
	Generation uint64
	Claim      store.Claim
}

// Was is the binding, as what rests on it names it.
func (b *Binding) Was() *store.Binding {
	return &store.Binding{Host: b.Host, Generation: b.Generation, Claim: b.Claim}
}

// Message is the port as its host is told of it.
func (b *Binding) Message() *controllerv1.StaticPort {
	sw, group, _ := strings.Cut(b.Group, "/")
	return &controllerv1.StaticPort{Port: b.ID, Switch: sw, PortGroup: group, Vm: b.Adapter.VM,
		Adapter: b.Adapter.Name, Mac: b.MAC}
}

// On is the id of the host that the port is bound on; "" for no port.
func (b *Binding) On() string {
	if b == nil {
		return ""
	}
	return b.Host
}
