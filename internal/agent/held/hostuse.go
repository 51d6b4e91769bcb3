package held

import (
	"cmp"
	"fmt"

	"heddle/internal/agent/active"
	"heddle/internal/agent/state"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// HostUse says for what the host needs a device, by the device alone; "" for nothing.
func HostUse(dev Devices, d hostdev.Device) string {
	switch {
	case d.Master.Name != "":
		return fmt.Sprintf("it is a member of %s %s", cmp.Or(d.Master.Driver, "device"), d.Master.Name)
	case d.HostTraffic:
		return "the host has addresses on it"
	}
	for _, p := range dev.Past(d) {
		return fmt.Sprintf("device %s is on top of it", p.Name)
	}
	return ""
}

// InUse is the state of a port that can't have a device because somebody else has it.
func InUse(port, device, why string) problem.Problem {
	return problem.Problem{Code: problem.DeviceInUse, Device: device, Peer: port, Detail: why}
}

// admits adds to the problems why the device must not become that of a port whose guest a controller has announced. The
// device is judged again when it is there: at the announcement it may have been yet to be made, and the host may have
// put it to its own use since. One that the port has is not asked about again. That the guest runs, as somebody says,
// is no reason: who says it may be the same controller.
func (hd *Part) admits(now *active.Draft, p *plan.Port, d hostdev.Device) bool {
	if g := hd.host.Document.GivenTo(p.ID); g == nil || !g.ByController {
		return true
	}
	if h := hd.host.Document.Of(p.ID); h != nil && h.Index == d.Index && !hd.replaced(active.Bound{ID: p.ID, Device: d},
		*h) {
		return true
	}
	why := HostUse(hd.host.Devices(), d)
	if why == "" {
		return true
	}
	now.Report(p.ID, InUse(p.ID.Name, d.Name, why))
	return false
}

// publishDevice publishes that a device serves a port now, or no longer does.
func (hd *Part) publishDevice(k event.Kind, h state.Held) {
	what, e := "port", event.Event{Kind: k, Switch: h.ID.Switch, Device: h.Device}
	if e.Port = h.ID.Name; h.Uplink {
		what, e.Port, e.Uplink = "uplink", "", h.ID.Name
	}
	e.Text = fmt.Sprintf("device %s serves %s %s", h.Device, what, h.ID.Name)
	if k == event.Disconnected {
		e.Text = fmt.Sprintf("device %s no longer serves %s %s", h.Device, what, h.ID.Name)
	}
	hd.host.Events.Publish(e)
}
