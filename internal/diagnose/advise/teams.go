package advise

import (
	"fmt"
	"slices"
	"strings"

	"heddle/internal/api"
	"heddle/internal/plan"
)

// link is a choice of a team: an uplink, or a LAG with its members.
type link struct {
	name    string
	lag     bool
	members []*plan.Uplink
}

// vlans returns the VLANs that one of the members carries.
func (k link) vlans() (s plan.VLANSet) {
	for _, u := range k.members {
		for i, w := range u.VLANs {
			s[i] |= w
		}
	}
	return s
}

// links returns the links that a list of a team names.
func links(sw *plan.Switch, list []string) (out []link) {
	for _, name := range list {
		at := link{name: name}
		members := []string{name}
		for _, g := range sw.LAGs {
			if g.Name == name {
				at.lag, members = true, g.Uplinks
			}
		}
		for _, u := range sw.Uplinks {
			if slices.Contains(members, u.ID.Name) {
				at.members = append(at.members, u)
			}
		}
		out = append(out, at)
	}
	return out
}

// usable returns those of the links by which frames may leave.
func (l *look) usable(of []link) (out []link) {
	for _, k := range of {
		if slices.ContainsFunc(k.members, func(u *plan.Uplink) bool { return u.Usable(l.Host.Facts[u.ID]) }) {
			out = append(out, k)
		}
	}
	return out
}

// unusable returns, for each link that cannot be used, the reason.
func (l *look) unusable(of []link) (out []string) {
	for _, k := range of {
		if len(l.usable([]link{k})) == 0 {
			out = append(out, k.name+" ("+l.whyNot(k)+")")
		}
	}
	return out
}

func (l *look) whyNot(k link) string {
	why := "none is connected"
	for _, u := range k.members {
		f, ok := l.Host.Facts[u.ID]
		switch {
		case !ok && !l.Host.Waiting[u.ID].None():
			why = l.Host.Waiting[u.ID].Text()
		case !ok:
			why = "not connected"
		case !f.Up:
			why = "down"
		case u.Drained:
			why = "drained"
		default:
			why = f.Out.Value().Text()
		}
	}
	return why
}

// team is a port group's teaming, or that of the ports that set it for themselves.
type team struct {
	sw              *plan.Switch
	first           *plan.Port // ports are the connected ones
	ports           []*plan.Port
	active, standby []link
}

func (t *team) policy() *plan.Teaming { return &t.first.Policy.Teaming }

func (t *team) all() []link { return slices.Concat(t.active, t.standby) }

// own reports whether the port sets its teaming itself.
func own(p *plan.Port) bool {
	e := &p.Policy.Teaming
	return e.Policy.From == plan.FromPort || e.Active.From == plan.FromPort || e.Standby.From == plan.FromPort
}

// on returns a finding about the port group, or about the port that sets it for itself.
func (t *team) on(sign string, args ...any) api.Finding {
	f := api.Finding{Switch: t.sw.Name, PortGroup: t.first.PortGroup, Sign: fmt.Sprintf(sign, args...)}
	if own(t.first) || t.first.Policy.VLAN.From == plan.FromPort {
		f.PortGroup, f.Port = "", t.first.ID.Name
	}
	return f
}

// teams returns the teams of the switches with uplinks, one for each port group, VLAN and teaming.
func (l *look) teams() (out []*team) {
	type key struct {
		sw, group, port, policy, active, standby string
		vlan                                     plan.VLAN
	}
	at := map[key]*team{}
	l.eachPort(func(sw *plan.Switch, p *plan.Port, _ *counts) {
		if len(sw.Uplinks) == 0 {
			return
		}
		e := &p.Policy.Teaming
		k := key{sw: sw.Name, group: p.PortGroup, policy: string(e.Policy.V), active: strings.Join(e.Active.V, ","),
			standby: strings.Join(e.Standby.V, ","),
			vlan:    p.Policy.VLAN.V}
		if own(p) || p.Policy.VLAN.From == plan.FromPort {
			k.port = p.ID.Name
		}
		t := at[k]
		if t == nil {
			t = &team{sw: sw, first: p, active: links(sw, e.Active.V), standby: links(sw, e.Standby.V)}
			at[k], out = t, append(out, t)
		}
		t.ports = append(t.ports, p)
	})
	return out
}

// sum returns the sum of a count over the team's ports.
func (l *look) sum(t *team, count func(*counts) uint64) (n uint64) {
	for _, p := range t.ports {
		n += count(l.of(p.ID))
	}
	return n
}
