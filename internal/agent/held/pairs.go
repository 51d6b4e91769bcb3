package held

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

// MakePair makes the devices of a host port. It saves the record of the pair first.
func (hd *Part) MakePair(id plan.PortID, p hostdev.Pair) error {
	hd.host.Document.PutPair(state.Pair{ID: id, Host: p.Host, End: p.Switch, MAC: p.MAC})
	if err := hd.host.Save(); err != nil && hd.host.Commanded() {
		hd.host.Document.DropPair(p.Host)
		return err
	}
	if err := hd.host.Devices().CreatePair(p); err != nil {
		hd.host.Document.DropPair(p.Host)
		return err
	}
	end, ok, err := hd.host.Devices().Device(p.Switch)
	if err == nil && ok {
		hd.host.Document.PairOf(p.Host).Made(end)
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
func (hd *Part) knownPair(p *plan.Port) (hostdev.Device, bool, error) {
	rec := hd.host.Document.PairOf(p.Device)
	if rec == nil {
		rec = hd.earlierPair(p)
	}
	if rec == nil {
		return hostdev.Device{}, false, nil
	}
	end, ok, err := findPair(hd.host.Devices(), rec)
	if err != nil || !ok {
		return end, false, err
	}
	rec.Made(end)
	if alias := devices.Alias(hd.host.Agent, p.ID); end.Alias != alias {
		rec.ID = p.ID
		if err := hd.host.Devices().SetAlias(end, alias); err != nil {
			return end, false, err
		}
		if host, ok, err := hd.host.Devices().DeviceAt(rec.HostIndex); err == nil && ok && rec.Has(host) {
			if err := hd.host.Devices().SetAlias(host, alias); err != nil {
				return end, false, err
			}
		}
	}
	end, ok, err = hd.host.Devices().DeviceAt(end.Index)
	return end, ok, err
}

// earlierPair records a pair that was made by an agent version without such records: a held one, or one that is in
// every respect as agents make them.
func (hd *Part) earlierPair(p *plan.Port) *state.Pair {
	end, ok, err := hd.host.Devices().Device(devices.SwitchEnd(p.Device))
	if err != nil || !ok || end.Kind != hostdev.Veth || end.Alias != devices.Alias(hd.host.Agent, p.ID) {
		return nil
	}
	if h := hd.host.Document.Of(p.ID); h == nil || !h.Made || h.Index != end.Index {
		if !isWhole(hd.host.Devices(), end, hd.host.Agent) {
			return nil
		}
	}
	rec := hd.host.Document.PutPair(state.Pair{ID: p.ID, Host: p.Device, End: end.Name, MAC: p.InitialMAC})
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

// RemoveStrays removes pairs that the agent made and that belong to no port, because it was killed before it could
// remove them. Devices that only look similar stay. A failure here does not stop the agent.
func (hd *Part) RemoveStrays() {
	inUse := map[string]bool{}
	for _, sw := range hd.host.Active().Plan.Switches {
		for _, p := range sw.Ports {
			inUse[p.Device] = true
		}
	}
	for _, p := range slices.Clone(hd.host.Document.Pairs) {
		if inUse[p.Host] {
			continue
		}
		if err := removePair(hd.host.Devices(), &p); err != nil {
			hd.host.Log.Warn("a device of a host port that is gone stays", "err", err)
			continue
		}
		hd.host.Document.DropPair(p.Host)
	}
	for _, text := range Lookalikes(hd.host.Devices(), hd.host.Document, hd.host.Agent) {
		hd.host.Log.Warn(text)
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

// Lookalikes describes the devices that have the alias of this agent's host ports but are not its devices: somebody
// else set the alias. They are left alone.
func Lookalikes(dev Devices, st *state.Devices, agent string) (texts []string) {
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

// RemovePairs removes the recorded pairs for "heddle down", and returns what else has the alias. Without a record (the
// state cannot be read) it removes pairs that are in every respect as the agent makes them.
func RemovePairs(dev Devices, st *state.Devices, agent string, recorded bool) (left []string, err error) {
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
	return Lookalikes(dev, st, agent), errors.Join(errs...)
}
