package agent

import (
	"heddle/internal/diagnose/advise"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
)

// Abilities reports which offloads and features devices support, by port; a device that does not report one counts as
// not having it.
type Abilities interface {
	Of(device string) (hostdev.Ability, bool, error)
}

// devicesToAsk returns, in the loop, the devices whose abilities matter: those of uplinks, and taps, whose features
// show what their guests accept.
func (an *answers) devicesToAsk() (map[plan.PortID]advise.Ability, error) {
	all := map[plan.PortID]advise.Ability{}
	for i := range an.state.Held {
		h := &an.state.Held[i]
		d, ok, err := an.dev.Device(h.Device)
		if err != nil {
			return nil, err
		}
		at, attached := an.Active().Applied.Attachments[h.ID]
		if tap := d.Kind == hostdev.Tap; ok && attached && at.Ifindex == d.Index && (tap || h.Uplink) {
			all[h.ID] = advise.Ability{Device: d.Name, Tap: tap && !h.Uplink}
		}
	}
	return all, nil
}

// ask adds the abilities that devices report themselves, and leaves out devices that report none.
func (an *answers) ask(all map[plan.PortID]advise.Ability) error {
	for id, a := range all {
		if an.abilities == nil {
			delete(all, id)
			continue
		}
		can, known, err := an.abilities.Of(a.Device)
		switch {
		case err != nil:
			return err
		case !known:
			delete(all, id)
		default:
			a.Segments, a.Checksums, a.Queues, a.MaxQueues = can.Segments, can.Checksums, can.Queues, can.MaxQueues
			all[id] = a
		}
	}
	return nil
}
