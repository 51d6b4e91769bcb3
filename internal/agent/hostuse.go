package agent

import (
	"cmp"
	"fmt"

	"heddle/internal/agent/active"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// hostUse says for what the host itself needs a device. A guest gets none of those, unless somebody on this host says
// so.
type hostUse struct {
	*shared
	ports *ports
}

// of says for what the host needs the device of that name; "" for nothing, and for a device that is yet to be made.
func (u hostUse) of(device string) (string, error) {
	for _, sw := range u.Active().Config.Switches {
		for _, up := range sw.Uplinks {
			if up.Device == device {
				return fmt.Sprintf("it is uplink %s of switch %s", up.Name, sw.Name), nil
			}
		}
	}
	d, ok, err := u.dev.Device(device)
	if err != nil || !ok { // the guest's hypervisor makes it when the guest arrives
		return "", err
	}
	return u.asItIs(d), nil
}

// asItIs says for what the host needs a device, by the device alone; "" for nothing.
func (u hostUse) asItIs(d hostdev.Device) string {
	switch {
	case d.Master.Name != "":
		return fmt.Sprintf("it is a member of %s %s", cmp.Or(d.Master.Driver, "device"), d.Master.Name)
	case d.HostTraffic:
		return "the host has addresses on it"
	}
	for _, p := range u.dev.Past(d) {
		return fmt.Sprintf("device %s is on top of it", p.Name)
	}
	return ""
}

// inUse is the state of a port that can't have a device because somebody else has it.
func inUse(port, device, why string) problem.Problem {
	return problem.Problem{Code: problem.DeviceInUse, Device: device, Peer: port, Detail: why}
}

// admits adds to the problems why the device must not become that of a port whose guest a controller has announced. The
// device is judged again when it is there: at the announcement it may have been yet to be made, and the host may have
// put it to its own use since. One that the port has is not asked about again. That the guest runs, as somebody says,
// is no reason: who says it may be the same controller.
func (hd *holding) admits(now *active.Draft, p *plan.Port, d hostdev.Device) bool {
	if g := hd.state.GivenTo(p.ID); g == nil || !g.ByController {
		return true
	}
	if h := hd.state.Of(p.ID); h != nil && h.Index == d.Index && !hd.replaced(active.Bound{ID: p.ID, Device: d}, *h) {
		return true
	}
	why := hostUse{hd.shared, hd.ports}.asItIs(d)
	if why == "" {
		return true
	}
	now.Report(p.ID, inUse(p.ID.Name, d.Name, why))
	return false
}
