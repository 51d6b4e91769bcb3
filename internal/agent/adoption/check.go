package adoption

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/agent/adopt"
	"heddle/internal/agent/devices"
	"heddle/internal/agent/instance"
	"heddle/internal/api"
	"heddle/internal/host/hostdev"
	"heddle/internal/host/hostnet"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/known"
	"heddle/internal/spec/printable"
)

// adoptable returns the record of a move that may be made; the error lists everything that forbids it. It changes
// nothing.
func (ad *Part) adoptable(q api.Adopt) (*adopt.Record, []string, error) {
	gateways, lines := parseAdopt(q)
	d, u, err := ad.adoptableDevice(q.Device)
	if err != nil {
		return nil, nil, err
	}
	port, against := ad.adoptablePort(q, d, u)
	lines = append(lines, against...)
	managers := ad.net.Managers(d.Name, d.Index)
	if !q.Force {
		for _, m := range managers {
			lines = append(lines, m+"; then adopt it with --force")
		}
		managers = nil
	}
	c, err := ad.net.Read(d.Name, d.Index)
	if err != nil {
		return nil, nil, api.NewError(api.Invalid, append(lines, err.Error())...)
	}
	lines = append(lines, ad.addressesAgainst(d, c)...)
	if len(lines) > 0 {
		return nil, nil, api.NewError(api.Invalid, lines...)
	}
	port.Addresses = c.Prefixes
	r := &adopt.Record{Phase: adopt.Moving, Port: port, Config: c, Named: len(gateways) > 0,
		GatewayWithin: q.GatewayWithin, ConfirmWithin: q.ConfirmWithin}
	r.Gateways, err = c.Probes(gateways)
	if err != nil && !errors.Is(err, hostnet.ErrNoProbe) {
		return nil, nil, err
	}
	if r.Place, err = instance.Place(); err != nil {
		return nil, nil, err
	}
	if r.Settings, err = ad.net.Carried(d.Name); err != nil {
		return nil, nil, err
	}
	r.Quieted = adopt.QuietedOf(r.Settings)
	return r, managers, nil
}

// adoptableDevice finds the device and its uplink.
func (ad *Part) adoptableDevice(name string) (hostdev.Device, *plan.Uplink, error) {
	d, ok, err := ad.host.Devices().Device(name)
	if err != nil {
		return d, nil, err
	}
	if !ok {
		n := known.Names{What: "device", Else: map[string]string{}}
		for _, sw := range ad.host.Active().Plan.Switches {
			for _, u := range sw.Uplinks {
				n.All = append(n.All, u.Device)
				n.Else[u.ID.Name] = "an uplink, whose device is " + known.Shown(u.Device)
			}
		}
		return d, nil, api.NewError(api.NotFound, n.Missing(name))
	}
	if r := ad.host.Journal().Of(name); r != nil {
		return d, nil, api.NewError(api.Invalid, fmt.Sprintf("host port %s has adopted %s already: see \"heddle "+
			"host-port show %s\"", r.Port.Name, r.Config.Device, printable.ShellWord(r.Port.Name)))
	}
	if r := ad.host.Journal().Open(); r != nil {
		return d, nil, api.NewError(api.Invalid, fmt.Sprintf("the adoption of %s by %s is not finished: confirm it "+
			"first (heddle host-port confirm %s)", r.Config.Device, r.Port.Name, printable.ShellWord(r.Port.Name)))
	}
	for _, sw := range ad.host.Active().Plan.Switches {
		for _, u := range sw.Uplinks {
			if u.Device == name {
				return d, u, nil
			}
		}
	}
	return d, nil, api.NewError(api.Invalid, fmt.Sprintf("device %s is no uplink of any switch: make it one first "+
		"(heddle apply leaves its addresses alone)", name))
}

// adoptablePort returns the host port for the uplink's device, and what forbids it.
func (ad *Part) adoptablePort(q api.Adopt, d hostdev.Device, u *plan.Uplink) (spec.Port, []string) {
	sw := ad.host.Active().Plan.Switch(u.ID.Switch)
	port := spec.Port{Name: q.Name, Switch: sw.Name, PortGroup: q.PortGroup, Role: spec.Host, MAC: d.MAC.String(),
		MTU: d.MTU}
	if port.Name == "" {
		port.Name = ad.freeInterface()
	}
	port.Device = port.Name
	lines := ad.uplinkAgainst(sw, u, d)
	if len(port.Name) > hostdev.NameMax || strings.ContainsAny(port.Name, "/ \t\n:%") {
		return port, append(lines, fmt.Sprintf("%q is no name for a network interface: use at most %d characters, "+
			"without / and :", port.Name, hostdev.NameMax))
	}
	for _, name := range []string{port.Device, devices.SwitchEnd(port.Device)} {
		if _, taken, _ := ad.host.Devices().Device(name); taken {
			lines = append(lines, fmt.Sprintf("a device %s exists already: choose another name with --name", name))
		}
	}
	if portOf(ad.host.Active().Plan, port.Name) != nil {
		return port, append(lines, fmt.Sprintf("a port %s exists already: choose another name with --name", port.Name))
	}
	if port.PortGroup == "" {
		group, why := ad.onlyGroup(port, u)
		if why != "" {
			return port, append(lines, why)
		}
		port.PortGroup = group
	}
	return port, append(lines, ad.groupAgainst(port, u)...)
}

func (ad *Part) uplinkAgainst(sw *plan.Switch, u *plan.Uplink, d hostdev.Device) (lines []string) {
	if !u.VLANs.Has(0) {
		lines = append(lines, fmt.Sprintf("uplink %s carries VLANs %s, and the addresses on %s are in the untagged "+
			"network: add \"0\" to its vlans", u.ID, u.VLANs, d.Name))
	}
	if u.Blocked {
		lines = append(lines, fmt.Sprintf("uplink %s is blocked: unblock it first", u.ID))
	}
	if now, why := ad.host.View().StateOf(u.ID, u.Blocked); now != api.Up && !u.Blocked {
		lines = append(lines, fmt.Sprintf("uplink %s is %s: %s", u.ID, now, why))
	}
	if d.MTU > sw.MTU {
		lines = append(lines, fmt.Sprintf("device %s has MTU %d and switch %s carries %d: raise the switch's mtu "+
			"first, or lower the device's", d.Name, d.MTU, sw.Name, sw.MTU))
	}
	return lines
}

// onlyGroup returns the one port group that fits; if there is not exactly one, why lists those there are.
func (ad *Part) onlyGroup(p spec.Port, u *plan.Uplink) (group, why string) {
	var fit []string
	for _, s := range ad.host.Active().Config.Switches {
		for _, g := range s.PortGroups {
			p.PortGroup = g.Name
			if s.Name == p.Switch && len(ad.groupAgainst(p, u)) == 0 {
				fit = append(fit, g.Name)
			}
		}
	}
	switch len(fit) {
	case 0:
		return "", fmt.Sprintf("no port group of switch %s is untagged, not blocked and uses uplink %s: add one "+
			"(vlan: {none: true})", p.Switch, u.ID.Name)
	case 1:
		return fit[0], ""
	}
	return "", fmt.Sprintf("several port groups fit (%s): choose one with --port-group", strings.Join(fit, ", "))
}

// groupAgainst returns why the port, in its port group, could not take over from the device.
func (ad *Part) groupAgainst(port spec.Port, u *plan.Uplink) (lines []string) {
	resolved, lines, err := ad.host.With(port)
	if len(lines) > 0 {
		return lines
	}
	if err != nil {
		return []string{err.Error()}
	}
	p := portOf(resolved, port.Name)
	if p == nil {
		return []string{fmt.Sprintf("port group %s of switch %s takes no port %s", port.PortGroup, port.Switch,
			port.Name)}
	}
	if v := p.Policy.VLAN.V; v.Mode == plan.VLANAccess || v.Mode == plan.VLANTrunk && (!v.Set.Has(0) || v.AD) {
		lines = append(lines, fmt.Sprintf("port group %s has VLAN %s, and the addresses are in the untagged network: "+
			"use one with vlan: {none: true}", port.PortGroup, v))
	}
	if p.Policy.Blocked.V {
		lines = append(lines, fmt.Sprintf("port group %s is blocked", port.PortGroup))
	}
	if t := p.Policy.Teaming; !uses(resolved.Switch(port.Switch), append(slices.Clone(t.Active.V), t.Standby.V...),
		u.ID.Name) {
		lines = append(lines, fmt.Sprintf("port group %s does not use uplink %s (teaming %s): its frames would leave "+
			"elsewhere", port.PortGroup, u.ID.Name, strings.Join(t.Active.V, ", ")))
	}
	return lines
}

// uses reports whether the uplink, or the LAG that it is in, is in the list.
func uses(sw *plan.Switch, team []string, uplink string) bool {
	if l := sw.LAGOf(uplink); l != nil {
		uplink = l.Name
	}
	return slices.Contains(team, uplink)
}

// addressesAgainst returns why the device's configuration cannot be moved.
func (ad *Part) addressesAgainst(d hostdev.Device, c *hostnet.Config) []string {
	stacked, err := ad.net.VLANDevices(d.Index)
	if err != nil {
		return []string{err.Error()}
	}
	var lines []string
	for _, name := range stacked {
		lines = append(lines, fmt.Sprintf("VLAN device %s on %s has addresses: move them to a host port in that VLAN "+
			"first (how-to/attach/host-traffic.md of the documentation)", name, d.Name))
	}
	if len(c.Addresses) == 0 {
		lines = append(lines, fmt.Sprintf("device %s has no addresses that could be moved", d.Name))
	}
	return lines
}

// freeInterface returns the first name vmkN that neither a device nor a port has.
func (ad *Part) freeInterface() string {
	for n := 0; ; n++ {
		name := fmt.Sprintf("vmk%d", n)
		_, taken, _ := ad.host.Devices().Device(name)
		_, end, _ := ad.host.Devices().Device(devices.SwitchEnd(name))
		if !taken && !end && portOf(ad.host.Active().Plan, name) == nil {
			return name
		}
	}
}
