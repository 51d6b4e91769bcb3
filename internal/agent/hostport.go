package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"heddle/internal/devices"
	"heddle/internal/hostdev"
	"heddle/internal/plan"
)

// hostInterface finds or makes the device pair of a host port and returns the switch's end. With enforce, MAC, MTU and
// addresses of the host's end are made what the plan says.
func (a *Agent) hostInterface(p *plan.Port, enforce bool) (hostdev.Device, error) {
	end := devices.SwitchEnd(p.Device)
	made, err := a.adoptPair(p, end)
	if err != nil {
		return hostdev.Device{}, err
	}
	if !made {
		pair := hostdev.Pair{Host: p.Device, MAC: p.InitialMAC, MTU: p.MTU, Switch: end, Alias: devices.Alias(a.name, p.ID)}
		if err := a.dev.CreatePair(pair); err != nil {
			return hostdev.Device{}, err
		}
		enforce = true
	}
	if enforce {
		if err := a.enforce(p, end); err != nil {
			return hostdev.Device{}, err
		}
	}
	d, ok, err := a.dev.Device(end)
	if err == nil && !ok {
		err = fmt.Errorf("device %s went away", end)
	}
	return d, err
}

// adoptPair says whether the pair is there. A pair of ours that served another port is removed; a device that is not ours is
// an error.
func (a *Agent) adoptPair(p *plan.Port, end string) (bool, error) {
	host, okHost, err := a.dev.Device(p.Device)
	if err != nil {
		return false, err
	}
	sw, okSwitch, err := a.dev.Device(end)
	if err != nil {
		return false, err
	}
	want, ours := devices.Alias(a.name, p.ID), devices.AliasPrefix(a.name)
	switch {
	case !okHost && !okSwitch:
		return false, nil
	case okSwitch && sw.Alias == want:
		return true, nil // the host's end may have been renamed or moved: it is the host's
	case okHost && okSwitch && sw.Alias == "" && sw.Peer.Index == host.Index && !sw.Peer.Elsewhere:
		return true, nil // a crash between making and marking the pair
	case okSwitch && strings.HasPrefix(sw.Alias, ours):
		return false, a.dev.Delete(sw)
	}
	name := p.Device
	if !okHost {
		name = end
	}
	return false, fmt.Errorf("a device %s exists that this agent did not make: rename or remove it, or give the port another device name", name)
}

// enforce makes the host's end what the plan says.
func (a *Agent) enforce(p *plan.Port, end string) error {
	host, okHost, err := a.dev.Device(p.Device)
	if err != nil {
		return err
	}
	sw, okSwitch, err := a.dev.Device(end)
	if err != nil {
		return err
	}
	var errs []error
	if okSwitch && sw.MTU != p.MTU {
		errs = append(errs, a.dev.SetMTU(sw, p.MTU))
	}
	if !okHost || sw.Peer.Index != host.Index || sw.Peer.Elsewhere {
		return errors.Join(errs...)
	}
	if host.MTU != p.MTU {
		errs = append(errs, a.dev.SetMTU(host, p.MTU))
	}
	if host.MAC != p.InitialMAC {
		errs = append(errs, a.dev.SetMAC(host, p.InitialMAC))
	}
	if a.adopted(p.ID.Name) != nil && a.runTime(p.ID.Name) != nil { // its addresses live as they did on the device
		return errors.Join(errs...)
	}
	var want []netip.Prefix
	for _, s := range p.Addresses {
		prefix, err := netip.ParsePrefix(s)
		if err != nil {
			return err
		}
		want = append(want, prefix)
	}
	return errors.Join(append(errs, a.dev.SetAddresses(host, want))...)
}

// removeStrays removes pairs that an agent of this name made and that no port has any more: it was killed before it could.
func (a *Agent) removeStrays() error {
	inUse := map[string]bool{}
	for _, sw := range a.plan.Switches {
		for _, p := range sw.Ports {
			inUse[devices.Alias(a.name, p.ID)] = true
		}
	}
	var errs []error
	for _, d := range a.dev.WithAlias(devices.AliasPrefix(a.name)) {
		if !inUse[d.Alias] {
			errs = append(errs, a.dev.Delete(d))
		}
	}
	return errors.Join(errs...)
}
