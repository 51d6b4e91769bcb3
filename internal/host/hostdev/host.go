package hostdev

import (
	"fmt"
	"slices"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Host is the view of one network namespace's devices: that of the thread that calls Open. Notifications keep it
// current, so that a thousand ports cost nothing while nothing changes. One goroutine uses it; any goroutine may read
// Notes.
type Host struct {
	ask     *asker
	set     *netlink.Handle
	eth     *ethtool.Ethtool
	watch   *watcher
	carrier *carrierWatch
	routes  *routeWatch
	links   links
	// born numbers the devices in links in the order in which they were first seen; births is the number of devices
	// so far.
	born      map[uint32]uint64
	births    uint64
	names     map[string]uint32
	addresses addresses
	// stacked holds, by device, the VLAN devices on it.
	stacked map[uint32]map[uint32]bool
	peers   peers
	// shown is what Device has assembled from all these, by name, since the last change.
	shown map[string]*Device
}

// Open subscribes to notifications, then lists the devices, so that nothing is missed in between.
func Open() (*Host, error) {
	ask, err := newAsker()
	if err != nil {
		return nil, err
	}
	watch, err := newWatcher()
	if err != nil {
		ask.close()
		return nil, err
	}
	set, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		ask.close()
		watch.close()
		return nil, fmt.Errorf("open a netlink socket for changes: %w", err)
	}
	eth, err := openEthtool()
	if err != nil {
		ask.close()
		watch.close()
		set.Close()
		return nil, err
	}
	carrier, err := newCarrierWatch(watch.notes, watch.stirred)
	if err != nil {
		ask.close()
		watch.close()
		set.Close()
		eth.Close()
		return nil, err
	}
	routes, err := newRouteWatch(watch.notes)
	if err != nil {
		_ = carrier.close()
		ask.close()
		watch.close()
		set.Close()
		eth.Close()
		return nil, err
	}
	h := &Host{ask: ask, watch: watch, carrier: carrier, routes: routes, set: set, eth: eth, links: links{},
		born: map[uint32]uint64{}, names: map[string]uint32{}, addresses: addresses{},
		stacked: map[uint32]map[uint32]bool{},
		peers:   peers{}, shown: map[string]*Device{}}
	if err := h.Refresh(); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// Close ends the subscription; Notes is closed after its remaining elements.
func (h *Host) Close() {
	_ = h.carrier.close() // the socket has no unsent data, and it writes to the channel that the watcher closes
	go func() {
		for range h.watch.notes { // let the readers finish
		}
	}()
	h.routes.close() // as the carrier's
	h.watch.close()
	h.ask.close()
	h.set.Close()
	h.eth.Close()
}

// Notes delivers the notifications; the goroutine that owns the Host passes each of them to Apply.
func (h *Host) Notes() <-chan Note { return h.watch.notes }

// Apply processes a notification and reports whether it contained anything new about a device that Device or Devices
// can show. Its content may be older than what was read since, for example after a change of our own: if it differs
// from what is known, the device is read again.
func (h *Host) Apply(n Note) (changed bool, err error) {
	switch {
	case n.resync:
		return true, h.Refresh()
	case n.route:
		return true, nil
	case n.ask:
		return h.applyAsked(n.link.index)
	case n.address != nil:
		return h.note(*n.address, n.gone), nil
	case n.nsid == localNS:
		return h.applyLocal(n)
	default:
		return h.applyForeign(n)
	}
}

func (h *Host) applyLocal(n Note) (bool, error) {
	if !n.gone {
		if h.links[n.link.index] == n.link {
			return false, nil
		}
		return h.applyAsked(n.link.index)
	}
	_, known := h.links[n.link.index]
	h.drop(n.link.index)
	// The device may have been the other end of a veth that stays: it has moved to another namespace, or both are
	// being removed.
	err := h.reask(func(l link) bool { return l.peerNS == localNS && l.peer == n.link.index })
	return known, err
}

// applyForeign updates the other ends that somebody requested; it ignores everything else in other namespaces.
func (h *Host) applyForeign(n Note) (bool, error) {
	k := linkKey{n.nsid, n.link.index}
	old, asked := h.peers[k]
	if !asked {
		return false, nil
	}
	if !n.gone {
		if old == n.link.end {
			return false, nil
		}
		now, found, err := h.ask.one(k)
		if err != nil || !found { // another notification will report that it is gone
			return false, err
		}
		h.peers[k] = now.end
		clear(h.shown)
		return old != now.end, nil
	}
	delete(h.peers, k)
	clear(h.shown)
	return true, h.reask(func(l link) bool { return l.peerNS == k.nsid && l.peer == k.index })
}

// reask reads those veths again that match.
func (h *Host) reask(match func(link) bool) error {
	for _, l := range h.links {
		if l.kind != "veth" || !match(l) {
			continue
		}
		now, found, err := h.ask.one(linkKey{localNS, l.index})
		if err != nil {
			return err
		}
		if found {
			h.put(now)
		} else {
			h.drop(l.index)
		}
	}
	return nil
}

func (h *Host) put(l link) {
	clear(h.shown)
	if old, ok := h.links[l.index]; ok {
		h.stack(old, false)
		if old.name != l.name && h.names[old.name] == l.index {
			delete(h.names, old.name)
		}
	}
	if _, known := h.born[l.index]; !known {
		h.births++
		h.born[l.index] = h.births
	}
	h.links[l.index] = l
	h.names[l.name] = l.index
	h.stack(l, true)
}

func (h *Host) drop(index uint32) {
	clear(h.shown)
	l, ok := h.links[index]
	if !ok {
		return
	}
	delete(h.links, index)
	delete(h.born, index)
	delete(h.addresses, index)
	h.stack(l, false)
	if h.names[l.name] == index {
		delete(h.names, l.name)
	}
}

// Device finds a device by its name, with the state of a veth's other end. The other end is read once; from then on
// notifications keep it current.
func (h *Host) Device(name string) (Device, bool, error) {
	if d, ok := h.shown[name]; ok {
		return *d, true, nil
	}
	index, ok := h.names[name]
	if !ok {
		return Device{}, false, nil
	}
	d, ok, err := h.show(index)
	if ok && err == nil && (d.Kind != Veth || d.Peer.Seen) { // another end that could not be seen is read again
		h.shown[name] = &d
	}
	return d, ok, err
}

// DeviceAt finds a device by its index, whatever its name is now.
func (h *Host) DeviceAt(index uint32) (Device, bool, error) {
	l, ok := h.links[index]
	if ok && h.names[l.name] == index {
		return h.Device(l.name)
	}
	return h.show(index)
}

func (h *Host) show(index uint32) (Device, bool, error) {
	l, ok := h.links[index]
	if !ok {
		return Device{}, false, nil
	}
	d := l.device()
	d.Born = h.born[index]
	if l.master != 0 {
		m := h.links[l.master]
		d.Master = Master{Name: m.name, Driver: m.kind}
	}
	d.HostTraffic = h.hostTraffic(index, stacking)
	if l.active != 0 {
		d.ActiveMember = h.links[l.active].name
	}
	if d.Kind != Veth || d.Peer.Index == 0 {
		return d, true, nil
	}
	if d.Peer.NSID == localNS {
		other, seen := h.links[d.Peer.Index]
		d.Peer.Seen, d.Peer.End = seen, other.end
		return d, true, nil
	}
	end, seen, err := h.peers.end(h.ask, linkKey{d.Peer.NSID, d.Peer.Index})
	d.Peer.Seen, d.Peer.End = seen, end
	return d, true, err
}

// Members lists the devices that are members of the device, such as those of a bond, by name.
func (h *Host) Members(d Device) []Device {
	var found []Device
	for _, l := range h.links {
		if l.master == d.Index {
			found = append(found, l.device())
		}
	}
	slices.SortFunc(found, func(a, b Device) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// WithAlias lists the devices whose alias begins with prefix.
func (h *Host) WithAlias(prefix string) []Device {
	var found []Device
	for index, l := range h.links {
		if !strings.HasPrefix(l.alias, prefix) {
			continue
		}
		if d, ok, err := h.show(index); err == nil && ok {
			found = append(found, d)
		}
	}
	return found
}
