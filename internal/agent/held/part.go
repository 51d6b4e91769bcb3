package held

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/agent/active"
	"heddle/internal/agent/state"
	"heddle/internal/host/hostdev"
	"heddle/internal/host/hostroute"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Devices is the part of hostdev.Host that the agent needs.
type Devices interface {
	Device(name string) (hostdev.Device, bool, error)
	DeviceAt(index uint32) (hostdev.Device, bool, error)
	WithAlias(prefix string) []hostdev.Device
	Members(d hostdev.Device) []hostdev.Device
	Past(d hostdev.Device) []hostdev.Past
	Notes() <-chan hostdev.Note
	Apply(hostdev.Note) (changed bool, err error)
	Refresh() error
	Look(name string) (changed bool, err error)
	WatchCarrier(indexes []uint32)
	CreatePair(hostdev.Pair) error
	CreateTunnel(hostdev.Tunnel) error
	Delete(hostdev.Device) error
	SetUp(d hostdev.Device, up bool) error
	SetPromiscuous(d hostdev.Device, on bool) error
	SetMTU(d hostdev.Device, mtu int) error
	SetMAC(d hostdev.Device, mac plan.MAC) error
	SetAlias(d hostdev.Device, alias string) error
	SetName(d hostdev.Device, name string) error
	Holder(netip.Addr) (hostdev.Device, bool, error)
	Addresses(d hostdev.Device) ([]netip.Prefix, error)
	AddAddress(d hostdev.Device, p netip.Prefix) error
	RemoveAddress(d hostdev.Device, p netip.Prefix) error
	SetRoutes(d hostdev.Device, want ...hostroute.Route) (added []hostroute.Route, err error)
	IPv6(d hostdev.Device) (bool, error)
	SetIPv6(d hostdev.Device, on bool) error
	ARPIgnore(d hostdev.Device) (string, error)
	SetARPIgnore(d hostdev.Device, value string) error
	Speed(device string) float64
	Offloads(d hostdev.Device) (map[hostdev.Offload]hostdev.OffloadState, error)
	SetOffload(d hostdev.Device, o hostdev.Offload, on bool) error
}

// Host is what the part needs of its host. Its functions are called in the loop.
type Host struct {
	active.Reader
	Log    *slog.Logger
	Events *event.Bus
	// Agent is the agent's name, by which its devices are known; Place is the machine and the agent, so that no other
	// host derives the same addresses.
	Agent, Place string
	Devices      func() Devices
	// Attached reports whether the device was attached to the kernel's program when this process began.
	Attached func(ifindex uint32) bool
	// Document is the part's document, Save writes it to disk.
	Document *state.Devices
	Save     func() error
	// Commanded: the present reconcile is for a command, and is refused if it cannot be saved.
	Commanded func() bool
	// Anew has the kernel given everything anew: a device there only looks the same.
	Anew func()
	// Remember remembers what is asked for, and returns what goes back to that.
	Remember func() (back func())
	// Resets removes what was set for a port whose owner has disconnected, if its port group demands that.
	Resets func(p *plan.Port) (was []string)
	// KeepsAddresses reports whether the addresses on a host port are the ones that it has adopted.
	KeepsAddresses func(port string) bool
	// Connected are the ports that commands connected; VMs the names of those that belong to VMs.
	Connected func() []spec.Port
	VMs       func() map[string]bool
	// MayTake reports whether a device is the one that a VM's port was given.
	MayTake func(id plan.PortID, d hostdev.Device, there bool) bool
	// Taken is called for a port of which a device was just prepared.
	Taken func(*plan.Port)
}

// Part has the devices of ports and uplinks. Only the agent's loop uses it.
type Part struct {
	host Host
	// restoring knows when what was set is compared with the kernel.
	restoring *Restoring

	born     map[plan.PortID]uint64   // of the held devices, hostdev.Device.Born
	hardware map[plan.PortID]hardware // known properties of the uplinks' devices
	// enforced is what was found when the settings of host ports' interfaces were last set: it holds until they are set
	// again.
	enforced map[plan.PortID]problem.Problem
}

// New returns the part; restoring knows when what was set is compared with the kernel.
func New(h Host, restoring *Restoring) *Part { return &Part{host: h, restoring: restoring} }

// Prepare makes the devices ready for what the plan wants of them.
func (hd *Part) Prepare(now *active.Draft, bounds []active.Bound) error {
	err := errors.Join(hd.prepareAll(now, bounds), hd.keepSettings(bounds), hd.keepARPApart(now, bounds),
		hd.tuneUplinks(bounds))
	return err
}

// Take compares the devices that ports have now with the held ones. Before anything is done to a device, its change
// of holder and its original settings are written to disk, so that a crash cannot lose them. After an error everything
// held is as before.
func (hd *Part) Take(now *active.Draft, bounds []active.Bound) (changed bool, err error) {
	if hd.holds(bounds) {
		return false, nil
	}
	given := hd.host.Document.Given
	held, released, departed, intended := hd.host.Document.Held, slices.Clip(
		hd.host.Document.Released), hd.host.Document.Departed, hd.host.Remember()
	hd.host.Document.Released = released
	changed, lost, err := hd.compareHold(now.Plan, bounds)
	if err == nil && changed {
		err = hd.host.Save()
	}
	if err != nil {
		hd.host.Document.Held, hd.host.Document.Released, hd.host.Document.Departed = held, released, departed
		intended()
		hd.host.Document.Given = given
		return false, err
	}
	hd.born = make(map[plan.PortID]uint64, len(bounds))
	for _, b := range bounds {
		hd.born[b.ID] = b.Device.Born
	}
	for _, tell := range lost {
		tell()
	}
	return changed, nil
}

// holds reports whether every port's device is unchanged and held, as it is after most changes.
func (hd *Part) holds(bounds []active.Bound) bool {
	if len(bounds) != len(hd.host.Document.Held) || len(hd.born) != len(bounds) {
		return false
	}
	for i := range bounds {
		b, h := &bounds[i], &hd.host.Document.Held[i]
		born, seen := hd.born[h.ID]
		if b.ID != h.ID || b.Device.Index != h.Index || !seen || b.Device.Born != born || h.MAC.IsZero() &&
			adoptable(h, *b) {
			return false
		}
	}
	return true
}

// compareHold makes the held devices those that ports have now; lost reports the owners that left.
func (hd *Part) compareHold(p *plan.Plan, bounds []active.Bound) (changed bool, lost []func(), err error) {
	now := make(map[plan.PortID]active.Bound, len(bounds))
	for _, b := range bounds {
		now[b.ID] = b
	}
	kept := make([]state.Held, 0, len(hd.host.Document.Held))
	vms, others := hd.host.VMs(), map[plan.PortID]bool{}
	for _, h := range hd.host.Document.Held {
		b, ok := now[h.ID]
		same := ok && b.Device.Index == h.Index
		if same && !hd.replaced(b, h) {
			if h.MAC.IsZero() && adoptable(&h, b) {
				h.MAC, changed = b.Device.Peer.MAC, true
			}
			kept = append(kept, h)
			delete(now, h.ID)
			continue
		}
		changed = true
		if same { // the device there now only looks the same: nothing to restore, and not attached
			hd.host.Anew()
			hd.depart(h)
			if vms[h.ID.Name] { // nobody has said that it is the same VM's
				others[h.ID] = true
				delete(now, h.ID)
			}
		} else {
			hd.host.Document.Released = append(hd.host.Document.Released, h)
		}
		lost = append(lost, hd.lostOwner(p, h))
	}
	for _, b := range bounds {
		if _, isNew := now[b.ID]; !isNew {
			continue
		}
		changed = true
		h, err := hd.holdOf(b)
		if err != nil {
			return false, nil, err
		}
		kept = append(kept, h)
	}
	hd.host.Document.Held = kept
	hd.keepGiven(others, vms)
	return changed, lost, nil
}

// InHand returns those devices that were held before; why the others cannot be taken becomes the problem of their
// ports.
func (hd *Part) InHand(now *active.Draft, bounds []active.Bound, why error) (have []active.Bound) {
	for _, b := range bounds {
		if h := hd.host.Document.Of(b.ID); h != nil && h.Index == b.Device.Index && !hd.replaced(b, *h) {
			have = append(have, b)
			continue
		}
		now.Report(b.ID, problem.Failed(problem.DeviceNotTaken, b.Device.Name, why))
	}
	return have
}

// replaced reports whether the held device disappeared and another device took its name and index. This process saw it,
// or, if it happened before the start, the lost attachment and another address show it.
func (hd *Part) replaced(b active.Bound, h state.Held) bool {
	if born, seen := hd.born[h.ID]; seen {
		return born != b.Device.Born
	}
	return !h.Own.IsZero() && h.Own != b.Device.MAC && !hd.host.Attached(h.Index)
}

// Distrust prepares devices again if they were found without the attachment they had.
func (hd *Part) Distrust() {
	for i := range hd.host.Document.Held {
		if h := &hd.host.Document.Held[i]; h.Prepared && !hd.host.Attached(h.Index) {
			h.Prepared = false
		}
	}
}

func (hd *Part) holdOf(b active.Bound) (state.Held, error) {
	d := b.Device
	ipv6, err := hd.host.Devices().IPv6(d)
	h := state.Held{ID: b.ID, Device: d.Name, Index: d.Index, Uplink: b.Uplink != nil, WasUp: d.AdminUp,
		WasPromiscuous: d.FlagPromiscuous, WasIPv6: ipv6, Own: d.MAC, Permanent: d.Permanent}
	if b.Port != nil {
		h.Made = b.Port.Role == spec.Host
		if adoptable(&h, b) {
			h.MAC = d.Peer.MAC
		}
	}
	for _, r := range hd.host.Document.Released {
		if r.Index == d.Index { // handed from one port to another
			h.WasUp, h.WasPromiscuous, h.WasIPv6, h.WasARPIgnore = r.WasUp, r.WasPromiscuous, r.WasIPv6, r.WasARPIgnore
			h.Offloads = r.Offloads
		}
	}
	// A device that was moved to another namespace and back has kept the changed settings: it could not be restored
	// there.
	if r, ok := hd.host.Document.Return(b.ID, d.Index, d.MAC); ok && h.Uplink {
		h.WasPromiscuous, h.Offloads = r.WasPromiscuous, r.Offloads
	}
	return h, err
}

// depart remembers, also for the next agent, the original settings of an uplink's device that left the host's namespace
// or disappeared, in case it comes back. Of other devices nothing is kept: their changed settings do not follow them.
func (hd *Part) depart(h state.Held) {
	if !h.Uplink || h.Made {
		return
	}
	if len(hd.host.Document.Departed) >= abi.MaxPorts { // uplinks of earlier configurations
		hd.host.Document.Departed = nil
	}
	hd.host.Document.Depart(h)
}

// adoptable reports whether the owner's adapter has an address to use: it is up for the first time. Before that its
// owner is still setting it up.
func adoptable(h *state.Held, b active.Bound) bool {
	p := b.Device.Peer
	return b.Port != nil && !h.Made && p.Seen && p.AdminUp
}

// prepareAll prepares newly taken devices: a port's link is set up. What was done once is not repeated, so that an
// operator may set a device down and it stays down.
func (hd *Part) prepareAll(now *active.Draft, bounds []active.Bound) error {
	var errs []error
	for i := range bounds {
		b := &bounds[i]
		h := hd.host.Document.Of(b.ID)
		if h == nil || h.Prepared {
			continue
		}
		if err := hd.prepare(b, h); err != nil {
			now.Report(b.ID, problem.Failed(problem.DeviceFailed, b.Device.Name, err))
			errs = append(errs, fmt.Errorf("port %s: %w", b.ID, err))
			continue
		}
		h.Prepared = true
		if b.Port != nil {
			hd.host.Taken(b.Port)
		}
		hd.publishDevice(event.Connected, *h)
		hd.host.Log.Info("device connected", "port", b.ID.String(), "device", b.Device.Name, "ifindex", b.Device.Index)
	}
	return errors.Join(errs...)
}

func (hd *Part) prepare(b *active.Bound, h *state.Held) error {
	d := b.Device
	var err error
	switch {
	case b.Uplink == nil:
		err = hd.host.Devices().SetIPv6(d, false)
	case !d.FlagPromiscuous:
		err = hd.host.Devices().SetPromiscuous(d, true)
	}
	if err != nil {
		return err
	}
	if h.Made {
		host, ok, err := hd.host.Devices().Device(b.Port.Device)
		if err == nil && ok && !host.AdminUp {
			err = hd.host.Devices().SetUp(host, true)
		}
		if err != nil {
			return err
		}
	}
	if !d.AdminUp {
		if err := hd.host.Devices().SetUp(d, true); err != nil {
			return err
		}
	}
	now, ok, err := hd.host.Devices().Device(d.Name)
	if ok && now.Index == d.Index {
		b.Device = now
	}
	return err
}

// lostOwner removes the overrides of a port whose owner has disconnected, if its port group demands that; tell reports
// the removal to the operator.
func (hd *Part) lostOwner(now *plan.Plan, h state.Held) (tell func()) {
	var was []string
	if p := now.Port(h.ID); p != nil && !h.Made {
		was = hd.host.Resets(p)
	}
	return func() {
		hd.publishDevice(event.Disconnected, h)
		hd.host.Log.Info("device disconnected", "port", h.ID.String(), "device", h.Device)
		if len(was) > 0 {
			hd.host.Log.Info("what the port had set for itself ends with its connection", "port", h.ID.String(), "was",
				was)
		}
	}
}

// Rename renames the ports in what is known of the held devices.
func (hd *Part) Rename(port, successor, left plan.PortID) {
	if born, ok := hd.born[port]; ok {
		hd.born[left] = born
	}
	if born, ok := hd.born[successor]; ok {
		hd.born[port] = born
		delete(hd.born, successor)
	}
}

// findOf is find for the port of a VM.
func (hd *Part) findOf(now *active.Draft, p *plan.Port) (hostdev.Device, bool, error) {
	if p.Device == "" {
		return hd.find(now, p.ID, p.Device, spec.VNIC)
	}
	d, there, err := hd.host.Devices().Device(p.Device)
	if err != nil {
		return d, false, err
	}
	if !hd.host.MayTake(p.ID, d, there) {
		now.Report(p.ID, problem.Problem{Code: problem.OwnerAwaited, Device: p.Device, Peer: p.ID.Name})
		return d, false, nil
	}
	return hd.find(now, p.ID, p.Device, spec.VNIC)
}

// keepGiven records the devices that VMs' ports hold now. Where another device has taken name and index of the one that
// a port held, the port has none any more.
func (hd *Part) keepGiven(lost map[plan.PortID]bool, vms map[string]bool) {
	devices := map[plan.PortID]uint32{}
	for _, h := range hd.host.Document.Held {
		if vms[h.ID.Name] {
			devices[h.ID] = h.Index
		}
	}
	hd.host.Document.GiveAll(devices, hd.host.Connected())
	for id := range lost {
		hd.host.Document.DropGiven(id)
	}
}
