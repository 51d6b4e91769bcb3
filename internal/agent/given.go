package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// A run-time port of a VM belongs to the device that the VM had when the port was connected, by the device's index in
// this boot, and never to a name: libvirt gives vnet0 again after its restart, to whatever VM comes first. Once that
// device is gone, the port waits until who starts the VM connects it again. A port without a VM, and one that the file
// declares, means its device by the name.

// owned has whose the run-time ports are, and which devices they were given.
type owned struct{ *shared }

// vms returns the names of the run-time ports that belong to VMs.
func (ow owned) vms() map[string]bool {
	runs, vms := make(map[string]*spec.Port, len(ow.state.Ports)), map[string]bool{}
	for i := range ow.state.Ports {
		p := &ow.state.Ports[i]
		runs[p.Name] = p
		if p.Domain != "" && p.Role != spec.Host {
			vms[p.Name] = true
		}
	}
	for i := range ow.state.NICs {
		n := &ow.state.NICs[i]
		if p := runs[n.Port]; p != nil && p.Role != spec.Host && p.Switch == n.Switch && p.PortGroup == n.PortGroup {
			vms[n.Port] = true
		}
	}
	return vms
}

// isVMs reports whether a run-time port belongs to a VM.
func (ow owned) isVMs(p spec.Port) bool {
	return p.Role != spec.Host && (p.Domain != "" || ow.state.NICOf(p.Name) != nil)
}

// vmOf is the UUID of the VM that a run-time port belongs to, "" where nobody said.
func (ow owned) vmOf(p spec.Port) string {
	if n := ow.state.NICOf(p.Name); n != nil {
		return n.VM
	}
	return strings.ToLower(p.Domain)
}

// another says by an error that a port of this name belongs to another VM, which runs: guests of two kinds, such as a
// domain and a container, may have one name. vm is whose the port is to be.
func (ow owned) another(p spec.Port, vm string) error {
	i := slices.IndexFunc(ow.state.Ports, func(o spec.Port) bool { return o.Name == p.Name })
	if i < 0 {
		return nil
	}
	have := &ow.state.Ports[i]
	if have.Device == p.Device || ow.state.Of(plan.PortID{Switch: have.Switch, Name: have.Name}) == nil {
		return nil
	}
	owner, vm := ow.vmOf(*have), strings.ToLower(cmp.Or(vm, p.Domain))
	if owner == "" || vm == "" || owner == vm {
		return nil
	}
	return api.NewError(api.Invalid, fmt.Sprintf("port %s belongs to another VM (%s), which runs with device %s: give "+
		"one of the two guests another name", p.Name, owner, have.Device))
}

// mayTake reports whether the device that has the name of a VM's port now is the port's: the device that it was given,
// or the first one of that name since it was connected.
func (ow owned) mayTake(id plan.PortID, d hostdev.Device, there bool) bool {
	g, h := ow.state.GivenTo(id), ow.state.Of(id)
	switch {
	case g != nil && g.Index == 0:
		return true
	case !there:
		return false
	case g != nil:
		return g.Index == d.Index
	}
	return h != nil && h.Index == d.Index // an earlier program held it
}

// looking is a request about a device that begins by asking the kernel which device has the name: who restarts a guest
// connects its new device at once, while the notifications of the old one's end and of the new one are still queued.
func (c *commands) looking(device string, do func() error) func() error {
	return func() error {
		if device == "" {
			return do()
		}
		changed, err := c.dev.Look(device)
		if changed {
			c.changer.settler.settleNext()
		}
		if err != nil {
			return err
		}
		return do()
	}
}

// hasTaken reports whether a port that is connected again has what it would be given now: the request changes nothing.
func (ow owned) hasTaken(p spec.Port) bool {
	if p.Device == "" || !ow.isVMs(p) {
		return true
	}
	d, there, err := ow.dev.Device(p.Device)
	g := ow.state.GivenTo(plan.PortID{Switch: p.Switch, Name: p.Name})
	if g != nil && g.Index == 0 {
		return err == nil && !there
	}
	return err == nil && there && ow.mayTake(plan.PortID{Switch: p.Switch, Name: p.Name}, d, there)
}

// gives is the part of an edit by which a VM's port is given the device that has its name now, or the first one that
// will have it; nic is whose it is, and byController says who asks for it.
func (ow owned) gives(p spec.Port, nic *state.NIC, byController bool) {
	id := plan.PortID{Switch: p.Switch, Name: p.Name}
	if p.Device == "" || p.Role == spec.Host || p.Domain == "" && nic == nil {
		ow.state.DropGiven(id)
		return
	}
	given := state.Given{ID: id, ByController: byController}
	if d, there, err := ow.dev.Device(p.Device); err == nil && there {
		given.Index = d.Index
	}
	ow.state.Give(given)
}
