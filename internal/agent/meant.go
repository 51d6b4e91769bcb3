package agent

import (
	"cmp"
	"fmt"
	"strings"

	"heddle/internal/api"
	"heddle/internal/spec/printable"
)

// meant decides whether a call is for this host, and for the port that has the name now. Who asks by way of a
// controller has looked at a report: the host may have been replaced since by another of its name, and the port as
// well.
type meant struct {
	*shared
	ports *ports
	// self is this host's id in its cluster; "" while it is in none.
	self string
}

// meant is what the host knows now. It is called in the loop.
func (c *commands) meant() meant {
	m := meant{shared: c.shared, ports: c.ports}
	if c.self != nil {
		m.self = c.self()
	}
	return m
}

// refusesHost says by an error that another host is meant; nil for this one.
func (m meant) refusesHost(host string) error {
	if host == "" || host == m.self {
		return nil
	}
	return api.NewError(api.Invalid, fmt.Sprintf("the call is for host %s, and this host is %s: another host has "+
		"taken its name meanwhile; look again (heddle host list), and repeat the command", printable.Text(host),
		cmp.Or(m.self, "in no cluster")))
}

// refuses says by an error that the host's port of that name is another than the one that is meant; nil where it is
// that one, and where there is none, which the caller says itself.
func (m meant) refuses(name string, of *api.PortIdentity) error {
	if of == nil {
		return nil
	}
	if err := m.refusesHost(of.Host); err != nil {
		return err
	}
	p := planned(m.Active().Plan, name)
	if p == nil {
		return nil
	}
	vm, adapter := "", ""
	if n := m.state.NICOf(name); n != nil {
		vm, adapter = n.VM, n.Adapter
	}
	why := ""
	switch {
	case vm != strings.ToLower(of.VM) || adapter != of.Adapter:
		why = fmt.Sprintf("it is of %s now, and was of %s", adapterText(vm, adapter), adapterText(of.VM, of.Adapter))
	case of.Switch != "" && p.ID.Switch != of.Switch:
		why = fmt.Sprintf("it is on switch %s now, and was on %s", p.ID.Switch, printable.Text(of.Switch))
	case vm == "" && p.Device != of.Device:
		why = fmt.Sprintf("its device is %s now, and was %s", cmp.Or(printable.Text(p.Device), "none"),
			cmp.Or(printable.Text(of.Device), "none"))
	default:
		return nil
	}
	return api.NewError(api.Invalid, fmt.Sprintf("port %s is another port meanwhile: %s; nothing was changed: look "+
		"again (heddle port list), and repeat the command", name, why))
}

// adapterText is whose a port is, for people.
func adapterText(vm, adapter string) string {
	if vm == "" {
		return "no VM that is known"
	}
	return fmt.Sprintf("adapter %s of VM %s", printable.Text(adapter), printable.Text(vm))
}
