package agent

import (
	"fmt"
	"slices"
	"strings"

	"heddle/internal/agent/held"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// taking decides whether an incoming port may take its name and its device on this host. A local hook has just given
// its guest the device, so that whoever else claims it is dead. Nobody else knows that: names such as tap1 or vnet0
// exist on every host, and stand for another guest's device, or for the host's own.
type taking struct {
	*shared
	connected *connected
	ports     *ports
	q         api.Incoming
	// remote: a controller asks.
	remote bool
}

// refuses says by an error what the port would take from others; nil for nothing.
func (a taking) refuses(p spec.Port) error {
	if have := a.connected.port(p.Name); have != nil && !a.isOwn(have.Name) {
		return api.NewError(api.Invalid, fmt.Sprintf("this host has a port %s of another guest: disconnect that first "+
			"(heddle port disconnect %s)", have.Name, printable.ShellWord(have.Name)))
	}
	if err := a.refusesMAC(p); err != nil || p.Device == "" {
		return err
	}
	for _, other := range a.Active().Config.Ports {
		if other.Device == p.Device && other.Name != p.Name && !a.isOwn(other.Name) {
			return a.inUse(p, fmt.Sprintf("port %s has it", other.Name))
		}
	}
	if !a.remote {
		return nil
	}
	why, err := hostUse{a.shared, a.ports}.of(p.Device)
	if why == "" || err != nil {
		return err
	}
	return a.inUse(p, why)
}

// refusesMAC refuses a MAC that another guest's port on the switch has: an incoming port takes it over once its guest
// speaks.
func (a taking) refusesMAC(p spec.Port) error {
	mac, err := plan.ParseMAC(p.MAC)
	if err != nil || mac.IsZero() {
		return nil
	}
	for _, other := range a.Active().Config.Ports {
		m, err := plan.ParseMAC(other.MAC)
		if err == nil && m == mac && other.Switch == p.Switch && !a.isOwn(other.Name) {
			return api.NewError(api.Invalid, fmt.Sprintf("port %s cannot have the MAC %s on this host: port %s of "+
				"another guest has it; give one of the two another", p.Name, mac, other.Name))
		}
	}
	return nil
}

// refusesBeside refuses the names that an incoming port needs beside its own while another port serves the guest, where
// others have them.
func (a taking) refusesBeside() error {
	for _, name := range []string{a.q.Name + state.IncomingName, a.q.Name + state.LeftName} {
		if a.ports.declared(name) != nil || a.connected.port(name) != nil && !a.isOwn(name) {
			return api.NewError(api.Invalid, fmt.Sprintf("port %s needs the name %s while its guest moves, and "+
				"another guest's port has it: give that one another name", a.q.Name, name))
		}
	}
	return nil
}

// isOwn reports whether a port of this host is one of the same guest's adapter. Somebody on this host may also leave
// out whose ports they are: the name says it then.
func (a taking) isOwn(port string) bool {
	own := a.state.NICOf(port)
	if own == nil || a.q.VM == "" {
		return !a.remote && slices.Contains([]string{a.q.Name, a.q.Name + state.IncomingName,
			a.q.Name + state.LeftName}, port)
	}
	return own.VM == strings.ToLower(a.q.VM) && own.Adapter == a.q.Adapter
}

func (a taking) inUse(p spec.Port, why string) error {
	return api.NewError(api.Invalid, held.InUse(p.Name, p.Device, why).Text())
}
