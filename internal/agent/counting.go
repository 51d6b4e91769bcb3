package agent

import (
	"context"

	"heddle/internal/agent/state"
	"heddle/internal/agent/view"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe"
	"heddle/internal/observe/accounts"
	"heddle/internal/plan"
)

// Losses reads the frames that devices themselves count as lost; nil if devices cannot be asked.
type Losses interface {
	All() (map[uint32]hostdev.Losses, error)
	Peer(hostdev.Peer) (l hostdev.Losses, seen bool, err error)
}

// counting is what the loop hands to a reader of counters, so that reading a thousand ports does not block the loop.
type counting struct {
	members []view.Member
	reader  *dataplane.CounterReader
	devices map[plan.PortID]hostdev.Device // devices of the connected ports; nil when not asked for
	speeds  map[plan.PortID]uint64         // of the uplinks' devices, bit/s
	// before are the counters of ports from before this host began to count.
	before map[plan.PortID]observe.Base
}

// counting collects, in the loop, what reading the counters needs. devices selects the devices that are asked for their
// losses; nil asks none.
func (an *answers) counting(devices func(*state.Held) bool) (c counting, err error) {
	c = counting{members: view.Members(an.Active().Plan), reader: an.kernel.CounterReader(),
		before: an.state.Bases()}
	if devices == nil || an.losses == nil {
		return c, nil
	}
	c.devices = make(map[plan.PortID]hostdev.Device, len(an.Active().Applied.Attachments))
	c.speeds = map[plan.PortID]uint64{}
	for i := range an.state.Held {
		h := &an.state.Held[i]
		if !devices(h) {
			continue
		}
		d, ok, err := an.dev.Device(h.Device)
		if err != nil {
			return c, err
		}
		if at, attached := an.Active().Applied.Attachments[h.ID]; ok && attached && at.Ifindex == d.Index {
			c.devices[h.ID] = d
			if h.Uplink {
				c.speeds[h.ID] = uint64(an.dev.Speed(d.Name))
			}
		}
	}
	return c, an.tunnelDevices(c)
}

// tunnelDevices adds the devices of tunnels: what they drop by themselves, the tunnel's program does not see.
func (an *answers) tunnelDevices(c counting) error {
	for _, sw := range an.Active().Plan.Switches {
		if sw.Tunnel == nil {
			continue
		}
		d, ok, err := an.dev.Device(sw.Tunnel.Device)
		if err != nil {
			return err
		}
		if at, attached := an.Active().Applied.Attachments[sw.Tunnel.ID]; ok && attached && at.Ifindex == d.Index {
			c.devices[sw.Tunnel.ID] = d
		}
	}
	return nil
}

// unmoved drops, in the loop, values that were read for ports whose counters another port has got meanwhile.
func unmoved[T any](ctx context.Context, s *shared, c counting, read []T, id func(T) plan.PortID) ([]T, error) {
	out := make([]T, 0, len(read))
	err := s.Do(ctx, func() error {
		now := s.kernel.CounterReader()
		for _, r := range read {
			if c.reader.Unmoved(id(r), now) {
				out = append(out, r)
			}
		}
		return nil
	})
	return out, err
}

// Stats returns the counters of every uplink and port, in the plan's order (S80, D7), and with them the devices' own
// losses.
func (an *answers) Stats(ctx context.Context) ([]api.Stats, error) {
	return an.read(ctx, everyDevice)
}

// read is Stats with the losses of the selected devices.
func (an *answers) read(ctx context.Context, devices func(*state.Held) bool) ([]api.Stats, error) {
	var c counting
	err := an.Do(ctx, func() (err error) { c, err = an.counting(devices); return err })
	if err != nil {
		return nil, err
	}
	out := make([]api.Stats, 0, len(c.members))
	for _, m := range c.members {
		if !c.reader.Has(m.ID) { // the plan that contains it is not active yet
			continue
		}
		n, err := c.reader.Read(m.ID)
		if err != nil {
			return nil, err
		}
		at, err := dataplane.Monotonic()
		if err != nil {
			return nil, err
		}
		s := view.Stats(m, n, c.before[m.ID], at)
		s.Speed = c.speeds[m.ID]
		out = append(out, s)
	}
	if err := an.addLosses(c, out); err != nil {
		return nil, err
	}
	return unmoved(ctx, an.shared, c, out, func(s api.Stats) plan.PortID {
		return plan.PortID{Switch: s.Switch, Name: s.Name}
	})
}

// Vitals returns, for each switch, sums of what its uplinks and ports counted on this host.
func (an *answers) Vitals(ctx context.Context) ([]api.Vitals, error) {
	var c counting
	err := an.Do(ctx, func() (err error) { c, err = an.counting(nil); return err })
	if err != nil {
		return nil, err
	}
	sum := view.NewVitals()
	for _, m := range c.members {
		if !c.reader.Has(m.ID) {
			continue
		}
		n, err := c.reader.Read(m.ID)
		if err != nil {
			return nil, err
		}
		sum.Add(m, n)
	}
	at, err := dataplane.Monotonic()
	return sum.At(at), err
}

// addLosses adds the devices' own losses to the counters.
func (an *answers) addLosses(c counting, to []api.Stats) error {
	if len(c.devices) == 0 {
		return nil
	}
	all, err := an.losses.All()
	if err != nil {
		return err
	}
	for i := range to {
		s := &to[i]
		d, ok := c.devices[plan.PortID{Switch: s.Switch, Name: s.Name}]
		if !ok {
			continue
		}
		if l, ok := all[d.Index]; ok {
			s.Device = view.Losses(d.Name, l)
		}
		if d.Kind != hostdev.Veth {
			continue
		}
		l, seen := all[d.Peer.Index]
		if d.Peer.Elsewhere {
			if l, seen, err = an.losses.Peer(d.Peer); err != nil {
				return err
			}
		}
		if seen {
			s.Peer = view.Losses("", l)
		}
	}
	return nil
}

// Accounts checks the counters of every uplink and port against the accounting invariant, under traffic (S94).
func (an *answers) Accounts(ctx context.Context) ([]api.PortAccount, error) {
	var c counting
	err := an.Do(ctx, func() (err error) { c, err = an.counting(nil); return err })
	if err != nil {
		return nil, err
	}
	var ids []plan.PortID
	for _, m := range c.members {
		if c.reader.Has(m.ID) {
			ids = append(ids, m.ID)
		}
	}
	all, err := accounts.Check(ctx, c.reader, ids)
	if err != nil {
		return nil, err
	}
	if all, err = unmoved(ctx, an.shared, c, all, func(x accounts.Account) plan.PortID { return x.ID }); err != nil {
		return nil, err
	}
	return view.Accounts(all), nil
}
