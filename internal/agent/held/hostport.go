package held

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"heddle/internal/agent/active"
	"heddle/internal/agent/devices"
	"heddle/internal/agent/state"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// hostInterface finds or makes the device pair of a host port and returns the switch's end. With fresh, a new plan, and
// with doubt it sets the MAC, MTU and addresses of the host's end to the plan's. What of these cannot be set is a
// problem of a port that serves with the others.
func (hd *Part) hostInterface(now *active.Draft, p *plan.Port, fresh, doubt bool) (hostdev.Device, error) {
	end, there, err := hd.knownPair(p)
	if err != nil {
		return end, err
	}
	if !there {
		if end, err = hd.newPair(p); err != nil {
			return end, err
		}
		fresh = true
	}
	misnamed := hd.keepNames(p, end)
	why, known := hd.enforced[p.ID]
	if fresh || doubt || !known {
		why = hd.enforce(p, end, !fresh && known)
		hd.enforced[p.ID] = why
	}
	if !misnamed.None() { // once it is there under its name, everything is compared
		delete(hd.enforced, p.ID)
	}
	if why = problem.First(why, misnamed); !why.None() {
		now.Report(p.ID, why)
	}
	d, ok, err := hd.host.Devices().DeviceAt(end.Index)
	if err == nil && !ok {
		err = fmt.Errorf("device %s went away", end.Name)
	}
	return d, err
}

// newPair makes the pair. An existing device with one of its names that is not ours is an error.
func (hd *Part) newPair(p *plan.Port) (end hostdev.Device, err error) {
	name := devices.SwitchEnd(p.Device)
	rec := hd.host.Document.PairOf(p.Device)
	for _, taken := range []string{p.Device, name} {
		if d, ok, err := hd.host.Devices().Device(taken); err != nil || ok {
			if err == nil && rec != nil && rec.Has(d) {
				err = fmt.Errorf("the switch's end %s of interface %s is in another network namespace: move it back, "+
					"or remove the interface (ip link delete %s), which is then made anew", name, taken, taken)
			} else if err == nil {
				err = fmt.Errorf("a device %s exists that this agent did not make: rename or remove it, or give the "+
					"port another device name", taken)
			}
			return end, err
		}
	}
	pair := hostdev.Pair{Host: p.Device, MAC: p.InitialMAC, MTU: p.MTU, Switch: name,
		Alias: devices.Alias(hd.host.Agent, p.ID)}
	if err := hd.MakePair(p.ID, pair); err != nil {
		return end, err
	}
	hd.host.Document.PairOf(p.Device).Counted = true
	end, ok, err := hd.host.Devices().Device(name)
	if err == nil && !ok {
		err = fmt.Errorf("device %s went away", name)
	}
	return end, err
}

// enforce gives the host's end the settings of the plan. An end that has been moved to another namespace is left alone.
// again: the plan is the one of before, so that a difference is somebody else's doing.
func (hd *Part) enforce(p *plan.Port, end hostdev.Device, again bool) problem.Problem {
	var errs []error
	set := func(what string, err error) {
		if errs = append(errs, err); err == nil && again {
			hd.restoring.Restored(p.ID, false, p.Device, what)
		}
	}
	if end.MTU != p.MTU {
		errs = append(errs, hd.host.Devices().SetMTU(end, p.MTU))
	}
	host, ok, err := hd.host.Devices().DeviceAt(end.Peer.Index)
	if err != nil || !ok || end.Peer.Elsewhere || host.Name != p.Device {
		return notEnforced(p, append(errs, err))
	}
	hd.restoring.follow(host)
	if host.MTU != p.MTU {
		set(fmt.Sprintf("the MTU %d", p.MTU), hd.host.Devices().SetMTU(host, p.MTU))
	}
	if host.MAC != p.InitialMAC {
		set("the MAC "+p.InitialMAC.String(), hd.host.Devices().SetMAC(host, p.InitialMAC))
	}
	if hd.host.KeepsAddresses(p.ID.Name) {
		// the addresses keep the lifetimes they had on the device
		return notEnforced(p, errs)
	}
	silent, err := hd.address(p, host)
	if why := notEnforced(p, append(errs, err)); !why.None() || !silent {
		return why
	}
	return problem.Problem{Code: problem.IPv6Off, Device: host.Name}
}

// notEnforced is the problem of a host port not all of whose settings could be made.
func notEnforced(p *plan.Port, errs []error) problem.Problem {
	if err := errors.Join(errs...); err != nil {
		return problem.Failed(problem.HostInterface, p.Device, err)
	}
	return problem.Problem{}
}

// address gives the host's end the addresses that the port asks for, and removes those that it asked for earlier. Other
// addresses belong to somebody else, such as an operator or a DHCP client. silent: the port asks for IPv6 addresses,
// and the host has switched IPv6 off on its interface.
func (hd *Part) address(p *plan.Port, host hostdev.Device) (silent bool, err error) {
	var want []netip.Prefix
	for _, s := range p.Addresses {
		prefix, err := netip.ParsePrefix(s)
		if err != nil {
			return false, err
		}
		want = append(want, prefix)
	}
	have, err := hd.host.Devices().Addresses(host)
	rec := hd.host.Document.PairOf(p.Device)
	if err != nil || rec == nil {
		return false, err
	}
	if !rec.Counted {
		rec.Put, rec.Counted = common(want, have), true
	}
	missing, over := without(want, have), without(rec.Put, want)
	if missing, silent, err = hd.possible(host, missing); err != nil {
		return silent, err
	}
	before := slices.Clone(rec.Put)
	if err := hd.plansToPut(rec, missing); err != nil {
		return silent, err
	}
	var errs []error
	// Add first: as long as the interface has an address of a subnet, other people's routes in that subnet stay.
	for _, prefix := range missing {
		err := hd.host.Devices().AddAddress(host, prefix)
		if errs = append(errs, err); err == nil && slices.Contains(before, prefix) {
			hd.restoring.Restored(p.ID, false, host.Name, "the address "+prefix.String())
		}
	}
	for _, prefix := range common(over, have) {
		if err := hd.host.Devices().RemoveAddress(host, prefix); err != nil {
			errs = append(errs, err)
			continue
		}
		hd.host.Log.Info("address removed that the port no longer asks for", "port", p.ID.String(), "device", host.Name,
			"address", prefix.String())
	}
	if err := errors.Join(errs...); err != nil {
		return silent, err
	}
	rec.Put = without(rec.Put, over)
	return silent, nil
}

// possible leaves out IPv6 addresses where the host has switched IPv6 off on the interface, which the kernel refuses.
func (hd *Part) possible(host hostdev.Device, list []netip.Prefix) (some []netip.Prefix, silent bool, err error) {
	if !slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Addr().Is6() }) {
		return list, false, nil
	}
	on, err := hd.host.Devices().IPv6(host)
	if err != nil || on {
		return list, false, err
	}
	return slices.DeleteFunc(list, func(p netip.Prefix) bool { return p.Addr().Is6() }), true, nil
}

// plansToPut records the addresses that are about to be set on an interface, so that after a crash in between they
// still count as ours.
func (hd *Part) plansToPut(rec *state.Pair, missing []netip.Prefix) error {
	fresh := without(missing, rec.Put)
	if len(fresh) == 0 {
		return nil
	}
	before := rec.Put
	rec.Put = slices.Concat(before, fresh)
	if err := hd.host.Save(); err != nil && hd.host.Commanded() {
		rec.Put = before
		return err
	}
	return nil
}

// without returns the prefixes of a list that are not in the other.
func without(list, other []netip.Prefix) (left []netip.Prefix) {
	for _, p := range list {
		if !slices.Contains(other, p) {
			left = append(left, p)
		}
	}
	return left
}

// common returns the prefixes that are in both lists.
func common(list, other []netip.Prefix) []netip.Prefix { return without(list, without(list, other)) }
