package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/agent/devices"
	"heddle/internal/agent/state"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
)

// makePair makes the devices of a host port. It saves the record of the pair first.
func (hd *holding) makePair(id plan.PortID, p hostdev.Pair) error {
	hd.state.PutPair(state.Pair{ID: id, Host: p.Host, End: p.Switch, MAC: p.MAC})
	if err := hd.store.Save(hd.state); err != nil && hd.effect.commanded {
		hd.state.DropPair(p.Host)
		return err
	}
	if err := hd.dev.CreatePair(p); err != nil {
		hd.state.DropPair(p.Host)
		return err
	}
	end, ok, err := hd.dev.Device(p.Switch)
	if err == nil && ok {
		hd.state.PairOf(p.Host).Made(end)
	}
	return err
}

// findPair returns the switch's end of a recorded pair, whatever its name is now.
func findPair(dev Devices, p *state.Pair) (d hostdev.Device, ok bool, err error) {
	if p.Index != 0 {
		d, ok, err = dev.DeviceAt(p.Index)
	} else {
		d, ok, err = dev.Device(p.End)
	}
	return d, ok && p.Is(d), err
}

// knownPair returns the switch's end of the port's pair if the agent made one with the device's name, perhaps for
// another port.
func (hd *holding) knownPair(p *plan.Port) (hostdev.Device, bool, error) {
	rec := hd.state.PairOf(p.Device)
	if rec == nil {
		rec = hd.earlierPair(p)
	}
	if rec == nil {
		return hostdev.Device{}, false, nil
	}
	end, ok, err := findPair(hd.dev, rec)
	if err != nil || !ok {
		return end, false, err
	}
	rec.Made(end)
	if alias := devices.Alias(hd.name, p.ID); end.Alias != alias {
		rec.ID = p.ID
		if err := hd.dev.SetAlias(end, alias); err != nil {
			return end, false, err
		}
		if host, ok, err := hd.dev.DeviceAt(rec.HostIndex); err == nil && ok && rec.Has(host) {
			if err := hd.dev.SetAlias(host, alias); err != nil {
				return end, false, err
			}
		}
	}
	end, ok, err = hd.dev.DeviceAt(end.Index)
	return end, ok, err
}

// earlierPair records a pair that was made by an agent version without such records: a held one, or one that is in
// every respect as agents make them.
func (hd *holding) earlierPair(p *plan.Port) *state.Pair {
	end, ok, err := hd.dev.Device(devices.SwitchEnd(p.Device))
	if err != nil || !ok || end.Kind != hostdev.Veth || end.Alias != devices.Alias(hd.name, p.ID) {
		return nil
	}
	if h := hd.state.Of(p.ID); h == nil || !h.Made || h.Index != end.Index {
		if !isWhole(hd.dev, end, hd.name) {
			return nil
		}
	}
	rec := hd.state.PutPair(state.Pair{ID: p.ID, Host: p.Device, End: end.Name, MAC: p.InitialMAC})
	rec.Made(end)
	return rec
}

// isWhole reports whether both ends of a pair exist, with the names and the alias that an agent gives them.
func isWhole(dev Devices, end hostdev.Device, agent string) bool {
	host, ok, err := dev.DeviceAt(end.Peer.Index)
	return err == nil && ok && end.Kind == hostdev.Veth && !end.Peer.Elsewhere && host.Kind == hostdev.Veth &&
		host.Peer.Index == end.Index && !host.Peer.Elsewhere &&
		host.Alias == end.Alias && strings.HasPrefix(end.Alias, devices.AliasPrefix(agent)) &&
		end.Name == devices.SwitchEnd(host.Name)
}

// removeStrays removes pairs that the agent made and that belong to no port, because it was killed before it could
// remove them. Devices that only look similar stay. A failure here does not stop the agent.
func (hd *holding) removeStrays() {
	inUse := map[string]bool{}
	for _, sw := range hd.Active().Plan.Switches {
		for _, p := range sw.Ports {
			inUse[p.Device] = true
		}
	}
	for _, p := range slices.Clone(hd.state.Pairs) {
		if inUse[p.Host] {
			continue
		}
		if err := removePair(hd.dev, &p); err != nil {
			hd.log.Warn("a device of a host port that is gone stays", "err", err)
			continue
		}
		hd.state.DropPair(p.Host)
	}
	for _, text := range lookalikes(hd.dev, hd.state, hd.name) {
		hd.log.Warn(text)
	}
}

// removePair removes a recorded pair, if it exists.
func removePair(dev Devices, p *state.Pair) error {
	d, ok, err := findPair(dev, p)
	if err != nil || !ok {
		return err
	}
	return dev.Delete(d)
}

// lookalikes describes the devices that have the alias of this agent's host ports but are not its devices: somebody
// else set the alias. They are left alone.
func lookalikes(dev Devices, st *state.State, agent string) (texts []string) {
	for _, d := range dev.WithAlias(devices.AliasPrefix(agent)) {
		ours := func(p state.Pair) bool { return p.Has(d) }
		held := func(h state.Held) bool {
			return h.Made && (h.Index == d.Index || h.Index == d.Peer.Index && !d.Peer.Elsewhere)
		}
		if slices.ContainsFunc(st.Pairs, ours) || slices.ContainsFunc(st.Held, held) ||
			slices.ContainsFunc(st.Released, held) {
			continue
		}
		texts = append(texts, fmt.Sprintf("device %s has the alias %s and was not made by this agent: it is left alone",
			d.Name, d.Alias))
	}
	slices.Sort(texts)
	return texts
}

// removePairs removes the recorded pairs for "heddle down", and returns what else has the alias. Without a record (the
// state cannot be read) it removes pairs that are in every respect as the agent makes them.
func removePairs(dev Devices, st *state.State, agent string, recorded bool) (left []string, err error) {
	var errs []error
	for _, p := range slices.Clone(st.Pairs) {
		if err := removePair(dev, &p); err != nil {
			errs = append(errs, err)
			continue
		}
		st.DropPair(p.Host)
	}
	if !recorded {
		for _, d := range dev.WithAlias(devices.AliasPrefix(agent)) {
			if end, ok, err := dev.DeviceAt(d.Index); err == nil && ok && isWhole(dev, end, agent) {
				errs = append(errs, dev.Delete(end))
			}
		}
	}
	return lookalikes(dev, st, agent), errors.Join(errs...)
}
