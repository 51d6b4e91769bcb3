package advise

import (
	"fmt"
	"slices"
	"time"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/diagnose/trace"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
)

func deviceRules() []Rule {
	return []Rule{
		{"mtu", api.FindingWrong, "an MTU is smaller than what is sent",
			"frames dropped and copies refused as `mtu-exceeded`, and the devices' MTUs",
			"long packets are lost, and short ones pass: connections open and then hang",
			"Raise the MTU of the device, the switch or the guest that has the smaller one.",
			mtu},
		{"neighbour-mtu", api.FindingWrong, "the physical switch takes shorter frames than this one sends",
			"the longest frame that the neighbour announces by LLDP, against the switch's MTU",
			"long packets are lost beyond the uplink, where nothing counts them",
			"Raise the MTU of the physical switch's port, or lower the switch's here.",
			neighbourMTU},
		{"device-missing", api.FindingNote, "a port's or uplink's device is not there",
			"how long it has not been there", "the port does not exist for the switch until its device does",
			"Start what makes the device, or correct its name.",
			deviceMissing},
		{"program-before", api.FindingWrong, "somebody else's program runs before the switch on a device",
			"the programs on the device (tcx, XDP), by the kernel's ids",
			"it may take frames, change them or pass them on: block, security policy and VLANs hold for what it lets " +
				"through alone",
			"Detach the program, or see to it that it runs behind the switch.",
			programBefore},
		{"past-switch", api.FindingWrong, "a device sends past the switch",
			"macvlan and ipvlan devices, and VLAN devices in a bridge, on top of a port's or uplink's device",
			"no policy, VLAN or block holds for its guests, the switch's own guests may not reach them, and a loop " +
				"through it is not found",
			"Connect those guests to ports of the switch, or give their devices another parent.",
			pastSwitch},
		{"device-losses", api.FindingNote, "an uplink's device loses frames",
			"the device's own counters: errors, overruns, and frames it did not send while its link was up",
			"no program of the switch saw these frames: cable, optics, ring sizes or CPU",
			"Look at cable and optics, enlarge the rings, or spread the queues over more CPUs.",
			deviceLosses},
		{"device-refused", api.FindingNote, "a device does not take what the switch hands it",
			"copies refused as `device-refused`: 1 % and more",
			"the guest is too slow, or its queue too short",
			"Give the guest more queues or CPU, or a longer queue.",
			deviceRefused},
	}
}

func mtu(l *look) (found []api.Finding) {
	for _, sw := range l.Host.Plan.Switches {
		longest, byReceivers := l.longest(sw), false
		members := l.members(sw)
		for _, m := range members {
			c, own := l.of(m.id), l.Host.Facts[m.id].MTU
			n := c.kept(abi.ReasonMTUExceeded)
			if n == 0 {
				continue
			}
			byReceivers = true
			m.at.Sign = fmt.Sprintf("%s longer than its MTU of %d %s refused %s; others send up to %d", frames(n), own,
				were(n), l.period(m.id, refusedOf(abi.ReasonMTUExceeded)), longest)
			cause, _ := l.explain.Explain(m.id, abi.ReasonMTUExceeded, trace.Known{Layer3: max(longest, own+1)})
			found = append(found, remedy(l.dated(m.at, m.id, refusedOf(abi.ReasonMTUExceeded)), cause))
		}
		for _, m := range members {
			c, own := l.of(m.id), l.Host.Facts[m.id].MTU
			n := c.dropped(abi.ReasonMTUExceeded)
			if n == 0 || byReceivers && own <= sw.MTU { // a copy that the only receiver refuses counts as a drop, too
				continue
			}
			m.at.Sign = fmt.Sprintf("%s longer than the switch's MTU of %d %s dropped %s; its own MTU is %d", frames(n),
				sw.MTU, were(n), l.period(m.id, dropsOf(abi.ReasonMTUExceeded)), own)
			cause, _ := l.explain.Explain(m.id, abi.ReasonMTUExceeded, trace.Known{Layer3: max(own, sw.MTU+1)})
			found = append(found, remedy(l.dated(m.at, m.id, dropsOf(abi.ReasonMTUExceeded)), cause))
		}
	}
	return found
}

// member is a connected port or uplink, and a finding about it.
type member struct {
	id plan.PortID
	at api.Finding
}

func (l *look) members(sw *plan.Switch) (out []member) {
	for _, u := range sw.Uplinks {
		if l.connected(u.ID) {
			out = append(out, member{u.ID, onUplink(u, "")})
		}
	}
	for _, p := range sw.Ports {
		if l.connected(p.ID) {
			out = append(out, member{p.ID, onPort(p, "")})
		}
	}
	return out
}

// longest returns the longest packet that the switch lets its members send, in bytes.
func (l *look) longest(sw *plan.Switch) (n int) {
	for _, u := range sw.Uplinks {
		n = max(n, l.Host.Facts[u.ID].MTU)
	}
	for _, p := range sw.Ports {
		n = max(n, l.Host.Facts[p.ID].MTU)
	}
	return min(n, sw.MTU)
}

// frameOverhead is how much longer than its packet the longest frame in IEEE 802.3's TLV is: the header and the check
// sequence, in bytes.
const frameOverhead = 18

func neighbourMTU(l *look) (found []api.Finding) {
	l.eachUplink(func(sw *plan.Switch, u *plan.Uplink, _ *counts) {
		v := l.uplink[u.ID]
		if v == nil || v.LLDP == nil {
			return
		}
		i := slices.IndexFunc(v.LLDP.Neighbours, func(n api.Neighbour) bool {
			return n.MaxFrame > 0 &&
				int(n.MaxFrame) < l.longest(sw)+frameOverhead
		})
		if i < 0 {
			return
		}
		n := &v.LLDP.Neighbours[i]
		f := onUplink(u, "port %s of %s takes frames of %d bytes, and packets of up to %d bytes are sent here, which "+
			"makes %d", n.Port, name(n), n.MaxFrame, l.longest(sw), l.longest(sw)+frameOverhead)
		cause := l.explain.FixSwitch(sw.Name, "Raise the MTU of the physical switch's port; or lower this switch's, "+
			"and that of the guests.", fmt.Sprintf("mtu: %d", int(n.MaxFrame)-frameOverhead))
		found = append(found, remedy(f, cause))
	})
	return found
}

func name(n *api.Neighbour) string {
	if n.SystemName != "" {
		return n.SystemName
	}
	return n.Chassis
}

func deviceMissing(l *look) (found []api.Finding) {
	add := func(f api.Finding, kind, reason string) {
		id := plan.PortID{Switch: f.Switch, Name: f.Port + f.Uplink}
		f.Sign = reason
		if gone, ok := l.Absent[id]; ok {
			f.FirstSeen = gone.Since
			f.Sign += "; for " + max(0, l.Now.Sub(gone.Since)).Round(time.Second).String()
			if gone.AtLeast {
				f.FirstSeen, f.Sign = time.Time{}, f.Sign+" at least"
			}
		}
		f.Change = l.Host.WhyWaiting(id).Fix()
		f.Command = l.command(id, kind+" show")
		found = append(found, f)
	}
	for i := range l.State.Uplinks {
		if u := &l.State.Uplinks[i]; u.State == api.Pending {
			add(api.Finding{Switch: u.Switch, Uplink: u.Name}, "uplink", u.Reason)
		}
	}
	for i := range l.State.Ports {
		if p := &l.State.Ports[i]; p.State == api.Pending {
			add(api.Finding{Switch: p.Switch, Port: p.Name}, "port", p.Reason)
		}
	}
	return found
}

func programBefore(l *look) (found []api.Finding) {
	add := func(list []api.ProgramBefore) {
		for _, p := range list {
			found = append(found, api.Finding{Switch: p.Switch, Port: p.Port, Uplink: p.Uplink,
				Sign:   fmt.Sprintf("%s runs on device %s (%s) before the switch's", p.What(), p.Device, p.Hook),
				Change: "Take it off the device, or have it attach behind the switch's program.", Command: p.Command()})
		}
	}
	for i := range l.State.Uplinks {
		add(l.State.Uplinks[i].RunsBefore)
	}
	for i := range l.State.Ports {
		add(l.State.Ports[i].RunsBefore)
	}
	return found
}

func pastSwitch(l *look) (found []api.Finding) {
	for _, p := range l.Past {
		f := api.Finding{Switch: p.At.Switch, Sign: fmt.Sprintf("%s %s, %s, sends and receives beside the switch",
			p.Driver, p.Device, p.Where),
			Change: "Give its guests ports of the switch, and remove it.", Command: "ip link del " + p.Device}
		if l.uplink[p.At] != nil {
			f.Uplink = p.At.Name
		} else {
			f.Port = p.At.Name
		}
		found = append(found, f)
	}
	return found
}

func deviceLosses(l *look) (found []api.Finding) {
	l.eachUplink(func(_ *plan.Switch, u *plan.Uplink, c *counts) {
		if c.Device == nil {
			return
		}
		d := *c.Device
		if !l.up(u.ID) || l.Window > 0 && l.linkChanged(u) { // the link causes the frames that it did not send
			d.TxErrors, d.TxDropped = 0, 0
		}
		if d.Lost() == 0 {
			return
		}
		f := onUplink(u, "device %s counts %s receiving and %s sending, %s missed, and %s not sent, %s", u.Device,
			many(d.RxErrors, "error"), many(d.TxErrors, "error"), frames(d.RxMissed), frames(d.TxDropped),
			l.lossPeriod(u))
		f.Change = "Look at the cable and the optics; for frames that were missed, make the device's rings longer."
		f.Command = "ethtool -S " + u.Device
		found = append(found, l.dated(f, u.ID, lossesCount, sendErrors, notSent))
	})
	return found
}

// linkChanged reports whether the uplink's link went down or came up in the measured time.
func (l *look) linkChanged(u *plan.Uplink) bool {
	return slices.ContainsFunc(l.Events, func(e event.Event) bool {
		return e.Kind == event.Link && e.Switch == u.ID.Switch && e.Uplink == u.ID.Name &&
			l.Now.Sub(e.Time) <= l.Window
	})
}

// lossPeriod returns since when the losses of an uplink's device have been counted.
func (l *look) lossPeriod(u *plan.Uplink) string {
	if l.Window > 0 {
		return l.windowText()
	}
	if l.Seen[u.ID][sendErrors].Before+l.Seen[u.ID][notSent].Before > 0 {
		return "since it was made (not sent: since its link changed)"
	}
	return "since it was made"
}

// refusedEvery: a device is reported if it refuses one of so many copies or more; refusedLeast is the least number of
// refused copies.
const (
	refusedEvery = 100
	refusedLeast = 10
)

func deviceRefused(l *look) (found []api.Finding) {
	for _, sw := range l.Host.Plan.Switches {
		for _, m := range l.members(sw) {
			c := l.of(m.id)
			n := c.kept(abi.ReasonDeviceRefused)
			if n < refusedLeast || n*refusedEvery < c.out() {
				continue
			}
			m.at.Sign = fmt.Sprintf("%s %s refused %s, and %s taken", many(n, "copy"), were(n),
				l.period(m.id, refusedOf(abi.ReasonDeviceRefused)),
				many(c.out(), "frame"))
			cause, _ := l.explain.Explain(m.id, abi.ReasonDeviceRefused, trace.Known{})
			found = append(found, remedy(l.dated(m.at, m.id, refusedOf(abi.ReasonDeviceRefused)), cause))
		}
	}
	return found
}
