package agent

import (
	"fmt"
	"maps"
	"slices"

	"heddle/internal/agent/active"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
)

// strangers are other people's programs on attached devices, by ifindex, as they were last seen.
type strangers map[uint32][]dataplane.Stranger

// chains knows which other programs run on the devices.
type chains struct {
	*shared
	settler   *settler
	attaching *attaching

	strangers strangers
	before    map[plan.PortID][]api.ProgramBefore // what runs before the switch on the devices of ports and uplinks
}

// lookAtChains compares the programs on every device with the switch's own: another program may have been put before
// it, or somebody may have removed it.
func (ch *chains) lookAtChains() {
	if ch.Active().Applied == nil {
		return
	}
	seen := make(map[uint32]bool, len(ch.Active().Applied.Attachments))
	for _, at := range ch.Active().Applied.Attachments {
		seen[at.Ifindex] = true
	}
	changed := len(ch.strangers) > len(seen)
	maps.DeleteFunc(ch.strangers, func(index uint32, _ []dataplane.Stranger) bool { return !seen[index] })
	if ch.lookAt(slices.Collect(maps.Keys(seen))) || changed {
		ch.settler.settle()
	}
}

// lookAt examines the programs on some devices, and reports whether the set of programs before the switch's has
// changed. If somebody removed the switch's program from a device, it is attached again.
func (ch *chains) lookAt(devices []uint32) (changed bool) {
	lost := false
	for _, index := range devices {
		c, err := ch.kernel.Chain(index)
		if err != nil {
			ch.Complain("look at the programs on the devices", err)
			continue
		}
		ch.noteExchanged(index, c.Exchanged)
		if !c.Ours {
			lost = true
			ch.log.Warn("somebody took the switch's program off a device: it is attached again", "ifindex", index)
		}
		changed = ch.strangers.are(index, c.Strangers) || changed
	}
	if lost {
		ch.attaching.attach(nextTurn)
	}
	return changed
}

// noteExchanged says that somebody had put other programs behind the switch's attachments to a device.
func (ch *chains) noteExchanged(index uint32, programs []uint32) {
	device := fmt.Sprintf("device %d", index)
	if d, ok, err := ch.dev.DeviceAt(index); err == nil && ok {
		device = "device " + d.Name
	}
	for _, id := range programs {
		text := fmt.Sprintf("somebody had exchanged the switch's program on %s for program %d, so that its frames did "+
			"not come to the switch: the switch's program is back", device, id)
		ch.log.Warn(text)
		ch.events.Publish(event.Event{Kind: event.Program, Text: text})
	}
}

// lookAtNew examines devices that have just been attached.
func (ch *chains) lookAtNew(waited map[uint32]error) {
	changed := false
	for index := range waited {
		if _, waits := ch.attaching.missing[index]; waits {
			continue
		}
		if c, err := ch.kernel.Chain(index); err == nil {
			changed = ch.strangers.are(index, c.Strangers) || changed
		}
	}
	if changed && !ch.settler.settling {
		ch.settler.settle()
	}
}

// are records the programs on a device, and reports whether the set of programs before the switch's has changed.
func (s strangers) are(index uint32, list []dataplane.Stranger) (changed bool) {
	before := slices.DeleteFunc(list, func(p dataplane.Stranger) bool { return !p.Before })
	if slices.Equal(before, s[index]) {
		return false
	}
	if delete(s, index); len(before) > 0 {
		s[index] = before
	}
	return true
}

// noteStrangers finds the ports and uplinks on whose devices something runs before the switch. Nobody can see from
// outside which frames a program lets pass, so all programs are reported.
func (ch *chains) noteStrangers(bounds []active.Bound) {
	ch.before = map[plan.PortID][]api.ProgramBefore{}
	for _, b := range bounds {
		if list := ch.beforeOn(b); len(list) > 0 {
			ch.before[b.ID] = list
		}
	}
}

func (ch *chains) beforeOn(b active.Bound) (list []api.ProgramBefore) {
	one := api.ProgramBefore{Switch: b.ID.Switch, Device: b.Device.Name}
	if b.Uplink != nil {
		one.Uplink = b.ID.Name
	} else {
		one.Port = b.ID.Name
	}
	if b.Device.XDP != 0 {
		x := one
		x.Hook, x.Program = api.HookXDP, b.Device.XDP
		list = append(list, x)
	}
	for _, s := range ch.strangers[b.Device.Index] {
		p := one
		p.Hook, p.Name, p.Program, p.Link, p.Agent = string(s.Hook), s.Name, s.Program, s.Link, s.Instance
		list = append(list, p)
	}
	return list
}

// mostWarned bounds how many ports an answer warns about: a program is often on all devices of a host.
const mostWarned = 16

// warnBefore adds to an answer which programs run, at this instant, before the switch on the devices of the ports and
// uplinks that the answer is about.
func (ch *chains) warnBefore(out *api.Applied, ids ...plan.PortID) {
	var devices []uint32
	for _, id := range ids {
		if at, ok := ch.Active().Applied.Attachments[id]; ok {
			devices = append(devices, at.Ifindex)
		}
	}
	if ch.lookAt(devices) {
		ch.settler.settle()
	}
	for _, id := range ids {
		for _, p := range ch.before[id] {
			out.RunsBefore = append(out.RunsBefore, p)
			switch n := len(out.RunsBefore); {
			case n <= mostWarned:
				out.Warnings = append(out.Warnings, fmt.Sprintf("%s: %s", id, p))
			case n == mostWarned+1:
				out.Warnings = append(out.Warnings, "and more programs run before the switch: see \"heddle port "+
					"list\" and \"heddle uplink list\"")
			}
		}
	}
}
