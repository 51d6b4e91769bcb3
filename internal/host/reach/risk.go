package reach

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Risk is an interface with addresses of the host's own that a change affects.
type Risk struct {
	// Device is the host port's interface, or the device of an uplink.
	Device string `json:"device"`
	// ID is the host port or the uplink.
	ID     plan.PortID `json:"id"`
	Uplink bool        `json:"uplink,omitzero"`
	// Outside: frames leave the host there, by an uplink that has a device. If no frames do, nobody else can be cut
	// off.
	Outside bool `json:"outside,omitzero"`
	// What lists the changes in the words of the configuration: "vlan: none → access 66".
	What []string `json:"what"`
}

// String returns the risk in a line: "vmk0: vlan: none → access 66".
func (r Risk) String() string { return r.Device + ": " + strings.Join(r.What, "; ") }

// Host is what must be known about the host in addition to the plans. It is pure.
type Host struct {
	// Addressed reports whether the host has addresses of its own on the device, or on a VLAN device on it.
	Addressed func(device string) bool
	// MAC returns the address of a host port whose plan has none.
	MAC func(plan.PortID) plan.MAC
}

// Risks returns the interfaces with addresses of the host's own that a change from one plan to the other affects.
func Risks(before, after *plan.Plan, h Host) (risks []Risk) {
	for _, sw := range before.Switches {
		for _, u := range sw.Uplinks {
			if r, ok := uplinkRisk(sw, u, after, h); ok {
				risks = append(risks, r)
			}
		}
		for _, p := range sw.Ports {
			if r, ok := portRisk(sw, p, after, h); ok {
				risks = append(risks, r)
			}
		}
	}
	return append(risks, taken(before, after, h)...)
}

func portRisk(sw *plan.Switch, p *plan.Port, after *plan.Plan, h Host) (Risk, bool) {
	if p.Role != spec.Host || len(p.Addresses) == 0 && !h.Addressed(p.Device) {
		return Risk{}, false
	}
	r := Risk{Device: p.Device, ID: p.ID, Outside: leaves(sw, p)}
	nsw, np := hostPort(after, p.Device)
	if np == nil {
		r.What = []string{"host port " + p.ID.Name + " is removed"}
		return r, true
	}
	d := &differences{}
	d.text("switch", sw.Name, nsw.Name)
	if p.ID.Name != np.ID.Name {
		d.text("port", p.ID.Name, np.ID.Name)
	}
	d.text("mac", macOf(p, h), macOf(np, h))
	d.number("mtu", p.MTU, np.MTU)
	d.text("gateway", routeText(p), routeText(np))
	for _, a := range p.Addresses {
		if !slices.Contains(np.Addresses, a) {
			d.add("address %s is removed", a)
		}
	}
	rows := np.Rows()
	for i, row := range p.Rows() {
		if !strings.HasPrefix(row.Policy, "monitoring.") {
			d.text(row.Policy, row.Value.String(), rows[i].Value.String())
		}
	}
	d.team(sw, p, nsw)
	r.What = d.what
	return r, len(r.What) > 0
}

// routeText is the default route of a host port; "" for none.
func routeText(p *plan.Port) string {
	text := p.Gateway
	if p.Metric != 0 {
		text += fmt.Sprint(" metric ", p.Metric)
	}
	if p.Table != 0 {
		text += fmt.Sprint(" table ", p.Table)
	}
	return text
}

func macOf(p *plan.Port, h Host) string {
	if p.InitialMAC.IsZero() {
		return h.MAC(p.ID).String()
	}
	return p.InitialMAC.String()
}

// hostPort returns the host port whose interface has that name.
func hostPort(p *plan.Plan, device string) (*plan.Switch, *plan.Port) {
	for _, sw := range p.Switches {
		for _, port := range sw.Ports {
			if port.Role == spec.Host && port.Device == device {
				return sw, port
			}
		}
	}
	return nil, nil
}

// members returns the uplinks that the port's team uses, with LAGs replaced by their members.
func members(sw *plan.Switch, p *plan.Port) (list []*plan.Uplink) {
	for _, name := range slices.Concat(p.Policy.Teaming.Active.V, p.Policy.Teaming.Standby.V) {
		names := []string{name}
		if g := sw.LAG(name); g != nil {
			names = g.Uplinks
		}
		for _, u := range sw.Uplinks {
			if slices.Contains(names, u.ID.Name) {
				list = append(list, u)
			}
		}
	}
	return list
}

func leaves(sw *plan.Switch, p *plan.Port) bool {
	return slices.ContainsFunc(members(sw, p), func(u *plan.Uplink) bool { return u.Device != "" })
}

func uplinkRisk(sw *plan.Switch, u *plan.Uplink, after *plan.Plan, h Host) (Risk, bool) {
	if u.Device == "" || !h.Addressed(u.Device) {
		return Risk{}, false
	}
	r := Risk{Device: u.Device, ID: u.ID, Uplink: true, Outside: true}
	nsw, nu := uplinkOf(after, u.Device)
	if nu == nil {
		r.What = []string{"it is no uplink any more"}
		return r, true
	}
	d := &differences{}
	d.text("switch", sw.Name, nsw.Name)
	d.number("mtu of the switch", sw.MTU, nsw.MTU)
	d.uplink(u, nu)
	d.text("LAG", lagText(sw.LAGOf(u.ID.Name)), lagText(nsw.LAGOf(nu.ID.Name)))
	r.What = d.what
	return r, len(r.What) > 0
}

func uplinkOf(p *plan.Plan, device string) (*plan.Switch, *plan.Uplink) {
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			if u.Device == device {
				return sw, u
			}
		}
	}
	return nil, nil
}

// taken returns the devices with addresses of the host's own that the change turns into uplinks or ports.
func taken(before, after *plan.Plan, h Host) (risks []Risk) {
	had := map[string]bool{"": true}
	for _, sw := range before.Switches {
		for _, u := range sw.Uplinks {
			had[u.Device] = true
		}
		for _, p := range sw.Ports {
			had[p.Device] = true
		}
	}
	take := func(device string, id plan.PortID, uplink bool, what string) {
		if !had[device] && h.Addressed(device) {
			risks = append(risks, Risk{Device: device, ID: id, Uplink: uplink, Outside: true,
				What: []string{"it becomes " + what + " " + id.String()}})
		}
	}
	for _, sw := range after.Switches {
		for _, u := range sw.Uplinks {
			take(u.Device, u.ID, true, "uplink")
		}
		for _, p := range sw.Ports {
			if p.Role != spec.Host { // a host port's interface did not exist before, or can't be taken
				take(p.Device, p.ID, false, "port")
			}
		}
	}
	return risks
}

// differences collects changes in the words of the configuration.
type differences struct{ what []string }

func (d *differences) add(format string, args ...any) {
	d.what = append(d.what, fmt.Sprintf(format, args...))
}

func (d *differences) text(field, before, after string) {
	if before != after {
		d.add("%s: %s → %s", field, cmp.Or(before, "none"), cmp.Or(after, "none"))
	}
}

func (d *differences) number(field string, before, after int) {
	d.text(field, fmt.Sprint(before), fmt.Sprint(after))
}

// team compares the uplinks behind the names in the port's team.
func (d *differences) team(sw *plan.Switch, p *plan.Port, after *plan.Switch) {
	d.number("mtu of the switch", sw.MTU, after.MTU)
	for _, u := range members(sw, p) {
		i := slices.IndexFunc(after.Uplinks, func(n *plan.Uplink) bool { return n.ID.Name == u.ID.Name })
		if i < 0 {
			d.add("uplink %s is removed", u.ID.Name)
			continue
		}
		d.text("device of uplink "+u.ID.Name, u.Device, after.Uplinks[i].Device)
		d.uplink(u, after.Uplinks[i])
		d.drained(u, after.Uplinks[i])
	}
	for _, name := range slices.Concat(p.Policy.Teaming.Active.V, p.Policy.Teaming.Standby.V) {
		if g := sw.LAG(name); g != nil {
			d.text("LAG "+name, lagText(g), lagText(after.LAG(name)))
		}
	}
}

func (d *differences) uplink(u, after *plan.Uplink) {
	of := func(field string) string { return field + " of uplink " + u.ID.Name }
	d.text(of("vlans"), u.VLANs.String(), after.VLANs.String())
	d.text(of("blocked"), fmt.Sprint(u.Blocked), fmt.Sprint(after.Blocked))
}

// drained compares whether ports may use an uplink. The host's own traffic on the uplink's device continues.
func (d *differences) drained(u, after *plan.Uplink) {
	d.text("drained of uplink "+u.ID.Name, fmt.Sprint(u.Drained), fmt.Sprint(after.Drained))
}

func lagText(g *plan.LAG) string {
	if g == nil {
		return "none"
	}
	return fmt.Sprintf("%s (%s) %s %s hash %s fallback %s", g.Name, strings.Join(g.Uplinks, ", "), g.Mode, g.Timeout,
		g.Hash, g.Fallback)
}
