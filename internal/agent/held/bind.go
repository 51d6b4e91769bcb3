package held

import (
	"heddle/internal/agent/active"
	"heddle/internal/agent/devices"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Bind finds the device of every port and uplink, and makes missing host interfaces. With fresh, a new plan, and where
// it is in doubt it also checks every setting of host interfaces against the plan.
func (hd *Part) Bind(now *active.Draft, fresh bool) ([]active.Bound, error) {
	if fresh { // every host port's interface is looked at, and some ports are gone
		hd.enforced = make(map[plan.PortID]problem.Problem, len(hd.enforced))
	}
	all := make([]active.Bound, 0, now.Plan.Members())
	vms := hd.host.VMs()
	for _, sw := range now.Plan.Switches {
		for _, u := range sw.Uplinks {
			d, ok, err := hd.find(now, u.ID, u.Device, spec.Host)
			if err != nil {
				return nil, err
			}
			if ok && d.MTU < sw.MTU {
				now.Report(u.ID, problem.Problem{Code: problem.LowMTU, Device: d.Name, Have: d.MTU,
					Want: sw.MTU, Peer: sw.Name})
			}
			if ok {
				all = append(all, active.Bound{ID: u.ID, Device: d, Uplink: u})
			}
		}
		for _, p := range sw.Ports {
			d, ok, err := hd.bindPort(now, p, fresh, hd.restoring.Doubts(), vms[p.ID.Name])
			if err != nil {
				return nil, err
			}
			if ok {
				all = append(all, active.Bound{ID: p.ID, Device: d, Port: p})
			}
		}
	}
	return all, nil
}

func (hd *Part) bindPort(now *active.Draft, p *plan.Port, fresh, doubt, vms bool) (hostdev.Device, bool,
	error) {
	if vms || p.Role != spec.Host {
		return hd.vnic(now, p, vms)
	}
	if p.InitialMAC.IsZero() {
		p.InitialMAC = devices.DerivedMAC(p.ID, hd.host.Place)
	}
	d, err := hd.hostInterface(now, p, fresh, doubt)
	if err != nil {
		now.Report(p.ID, problem.Failed(problem.HostInterface, p.Device, err))
		return hostdev.Device{}, false, nil
	}
	return d, true, nil
}

// vnic returns the device of a guest's port, of a VM's where vms says so.
func (hd *Part) vnic(now *active.Draft, p *plan.Port, vms bool) (d hostdev.Device, ok bool, err error) {
	if vms {
		d, ok, err = hd.findOf(now, p)
	} else {
		d, ok, err = hd.find(now, p.ID, p.Device, spec.VNIC)
	}
	return d, ok && err == nil && hd.admits(now, p, d), err
}

// find returns the device of that name if it can serve; otherwise the cause is added to the port's problems.
func (hd *Part) find(now *active.Draft, id plan.PortID, name string, role spec.Role) (hostdev.Device, bool,
	error) {
	if name == "" {
		now.Report(id, problem.Of(problem.NoDevice))
		return hostdev.Device{}, false, nil
	}
	d, ok, err := hd.host.Devices().Device(name)
	switch {
	case err != nil:
		return d, false, err
	case !ok:
		now.Report(id, problem.Problem{Code: problem.DeviceMissing, Device: name, Peer: hostdev.NamedOtherwise(name)})
		return d, false, nil
	}
	if why := devices.Unusable(d, role); !why.None() {
		now.Report(id, why)
		return d, false, nil
	}
	return d, true, nil
}
