package hostdev

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// address is one of the host's own addresses, reduced to what identifies it.
type address struct {
	index  uint32
	family uint8
	bits   uint8
	scope  uint8
	ip     [16]byte
}

// parseAddress reads the body of an RTM_NEWADDR or RTM_DELADDR message.
func parseAddress(b []byte) (address, error) {
	if len(b) < unix.SizeofIfAddrmsg {
		return address{}, errors.New("netlink: address message shorter than its header")
	}
	info := nl.DeserializeIfAddrmsg(b)
	a := address{index: info.Index, family: info.Family, bits: info.Prefixlen, scope: info.Scope}
	err := eachAttribute(b[unix.SizeofIfAddrmsg:], func(kind uint16, v []byte) error {
		// IFA_LOCAL is the near end of a point-to-point address, and has priority over IFA_ADDRESS.
		if kind == unix.IFA_LOCAL || kind == unix.IFA_ADDRESS && a.ip == [16]byte{} {
			a.ip = [16]byte{}
			copy(a.ip[:], v)
		}
		return nil
	})
	if err != nil {
		return address{}, fmt.Errorf("netlink: address message: %w", err)
	}
	return a, nil
}

// addresses lists the namespace's addresses.
func (a *asker) addresses() ([]address, error) {
	for range dumpTries {
		req := nl.NewNetlinkRequest(unix.RTM_GETADDR, unix.NLM_F_DUMP)
		req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: a.socket}
		req.AddData(nl.NewIfAddrmsg(unix.AF_UNSPEC))
		answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWADDR)
		if errors.Is(err, nl.ErrDumpInterrupted) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the host's addresses: %w", err)
		}
		list := make([]address, 0, len(answers))
		for _, b := range answers {
			one, err := parseAddress(b)
			if err != nil {
				return nil, err
			}
			list = append(list, one)
		}
		return list, nil
	}
	return nil, fmt.Errorf("list the host's addresses: they changed during each of %d attempts", dumpTries)
}

// note adds or removes an address, and returns whether the device's set of addresses changed. Addresses of link scope,
// such as those that IPv6 gives every device, do not count: nobody reaches the host by them.
func (h *Host) note(a address, gone bool) (changed bool) {
	if a.scope >= unix.RT_SCOPE_LINK {
		return false
	}
	clear(h.shown)
	had := h.addresses[a.index][a]
	switch {
	case gone:
		delete(h.addresses[a.index], a)
	case h.addresses[a.index] == nil:
		h.addresses[a.index] = map[address]bool{a: true}
	default:
		h.addresses[a.index][a] = true
	}
	return had == gone
}

// stacking limits how many VLAN devices on top of one another are followed.
const stacking = 3

// hostTraffic reports whether the host has addresses on the device, or on VLAN devices stacked on it.
func (h *Host) hostTraffic(index uint32, deep int) bool {
	if len(h.addresses[index]) > 0 {
		return true
	}
	if deep == 0 {
		return false
	}
	for upper := range h.stacked[index] {
		if h.hostTraffic(upper, deep-1) {
			return true
		}
	}
	return false
}

// stack records whether a VLAN device exists; it may be on top of a device of another namespace, which this one cannot
// see.
func (h *Host) stack(l link, there bool) {
	switch {
	case l.kind != "vlan" || l.peerNS != localNS:
	case !there:
		delete(h.stacked[l.peer], l.index)
	case h.stacked[l.peer] == nil:
		h.stacked[l.peer] = map[uint32]bool{l.index: true}
	default:
		h.stacked[l.peer][l.index] = true
	}
}
