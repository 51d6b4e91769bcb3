package held

import (
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// keepNames gives the ends of a host port's pair the names that they were made with, if somebody has renamed them: the
// port, the host's network configuration and its firewall know the interface by its name. A name that another device
// has taken meanwhile, and an end in another network namespace, are left alone: they are a problem of a port that
// serves.
func (hd *Part) keepNames(p *plan.Port, end hostdev.Device) problem.Problem {
	if why := hd.keepName(p.ID, end, hd.host.Document.PairOf(p.Device).End); !why.None() {
		return why
	}
	if end.Peer.Elsewhere {
		return problem.Problem{Code: problem.DeviceMoved, Device: p.Device}
	}
	host, ok, err := hd.host.Devices().DeviceAt(end.Peer.Index)
	if err != nil || !ok { // it is about to go: the next look finds no pair
		return problem.Problem{}
	}
	return hd.keepName(p.ID, host, p.Device)
}

func (hd *Part) keepName(id plan.PortID, d hostdev.Device, name string) problem.Problem {
	if d.Name == name {
		return problem.Problem{}
	}
	why := problem.Problem{Code: problem.DeviceRenamed, Device: name, Peer: d.Name}
	if _, taken, err := hd.host.Devices().Device(name); err != nil || taken {
		return why
	}
	if err := hd.host.Devices().SetName(d, name); err != nil {
		why.Detail = err.Error()
		return why
	}
	hd.restoring.Restored(id, false, d.Name, "the name "+name)
	return problem.Problem{}
}
