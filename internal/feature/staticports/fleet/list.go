package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/part"
	"heddle/internal/platform/access"
	"heddle/internal/platform/store"
	"heddle/internal/spec"
)

// ListStaticPorts lists the static ports, bound or not, and the ports that should be static ones and are not.
func (p *Ports) ListStaticPorts(ctx context.Context, q *controllerv1.ListStaticPortsRequest) (
	*controllerv1.ListStaticPortsResponse, error) {
	out, sight := &controllerv1.ListStaticPortsResponse{Stale: p.Fresh(ctx)}, access.GrantedTo(ctx)
	var all []store.Port
	for _, o := range p.Store.List(store.KindPorts) {
		ports, err := store.DecodePorts(&o)
		if err != nil {
			return nil, err
		}
		all = append(all, ports...)
	}
	known := p.known(p.Hosts.Ask(ctx, &controllerv1.GetHostsHereRequest{Reports: true}))
	settings, err := p.Hosts.Defined().Settings()
	if err != nil {
		return nil, err
	}
	for _, port := range all {
		out.Ports = append(out.Ports, p.staticPort(&port, known, settings))
	}
	out.Ports = append(out.Ports, p.conflictPorts(known)...)
	fits := func(want, got string) bool { return want == "" || want == got }
	out.Ports = slices.DeleteFunc(out.GetPorts(), func(port *controllerv1.FleetStaticPort) bool {
		return !fits(q.GetSwitch(), port.GetSwitch()) || !fits(q.GetPortGroup(), port.GetPortGroup()) ||
			!fits(q.GetHost(), port.GetHost()) || !sight.Sees(port.GetSwitch(), port.GetPortGroup())
	})
	slices.SortStableFunc(out.GetPorts(), func(a, b *controllerv1.FleetStaticPort) int {
		return cmp.Or(cmp.Compare(a.GetSwitch(), b.GetSwitch()), cmp.Compare(a.GetPortGroup(), b.GetPortGroup()),
			cmp.Compare(len(a.GetPort()), len(b.GetPort())), cmp.Compare(a.GetPort(), b.GetPort()),
			cmp.Compare(a.GetHost(), b.GetHost()))
	})
	return out, nil
}

// knownPorts is a host with what it has reported of the adapters on it.
type knownPorts struct {
	name      string
	of        map[part.Adapter]*controllerv1.HostPort
	connected bool
}

// known is what the hosts have reported of adapters, to whichever controller, by the hosts' ids.
func (p *Ports) known(there *fanout.Answers) map[string]knownPorts {
	all := map[string]knownPorts{}
	for _, h := range p.Hosts.All() {
		report, connected := there.ReportOf(h)
		k := knownPorts{h.Name, map[part.Adapter]*controllerv1.HostPort{}, connected}
		if report != nil {
			for _, port := range report.GetPorts() {
				if port.GetVm() != "" {
					k.of[part.AdapterOf(port.GetVm(), port.GetAdapter())] = port
				}
			}
		}
		all[h.ID] = k
	}
	return all
}

// staticPort is a static port as people see it.
func (p *Ports) staticPort(port *store.Port, known map[string]knownPorts,
	settings map[string]spec.PortSettings) *controllerv1.FleetStaticPort {
	out := &controllerv1.FleetStaticPort{Port: port.ID}
	out.Switch, out.PortGroup, _ = strings.Cut(port.Group, "/")
	if s, ok := settings[port.ID]; ok && s.Switch == out.GetSwitch() && s.PortGroup == out.GetPortGroup() {
		out.Label, out.Description, out.Settings = s.Name, s.Description, policyText(s.Policy)
	}
	b := port.Binding
	if b == nil {
		return out
	}
	out.Bound, out.Vm, out.Adapter, out.Mac = true, b.VM, b.Adapter, b.MAC
	out.Binding = SeenOf(port.ID, b)
	h, there := known[b.Host]
	if !there {
		return out
	}
	n := part.AdapterOf(b.VM, b.Adapter)
	out.Host, out.Stale = h.name, !h.connected
	if now := h.of[n]; now != nil {
		out.Name, out.State, out.Conflict = now.GetName(), now.GetState(), now.GetConflict()
	}
	out.Conflict = cmp.Or(p.Adapters.Marks(b.Host)[n].Text, out.GetConflict())
	return out
}

// conflictPorts are the ports on hosts whose adapters have no static port there and should.
func (p *Ports) conflictPorts(known map[string]knownPorts) (list []*controllerv1.FleetStaticPort) {
	for id, k := range known {
		marks := p.Adapters.Marks(id)
		for n, port := range k.of {
			text, b := cmp.Or(marks[n].Text, port.GetConflict()), p.Of(n)
			if text == "" || b != nil && b.Host == id {
				continue
			}
			list = append(list, &controllerv1.FleetStaticPort{Port: port.GetPort(), Switch: port.GetSwitch(),
				PortGroup: port.GetPortGroup(), Vm: n.VM, Adapter: n.Name, Mac: port.GetMac(), Host: k.name,
				Name: port.GetName(), State: port.GetState(), Conflict: text, Stale: !k.connected, Binding: seen(b)})
		}
	}
	return list
}

// policyOf is what the definition sets for a static port on a host, in JSON; nil for nothing.
func (p *Ports) policyOf(host string, port *controllerv1.StaticPort) []byte {
	v, err := p.Hosts.DefinedFor(host)
	if err != nil {
		return nil
	}
	settings, ok := v.SettingsOf(port.GetPort(), port.GetSwitch()+"/"+port.GetPortGroup())
	if !ok {
		return nil
	}
	return []byte(policyText(settings.Policy))
}

// policyText is a policy in JSON; "" for one that sets nothing.
func policyText(p spec.Policy) string {
	text, err := json.Marshal(p)
	if err != nil || string(text) == "{}" { // never fails: a policy is plain data
		return ""
	}
	return string(text)
}
