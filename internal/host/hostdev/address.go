package hostdev

import (
	"errors"
	"fmt"
	"maps"

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

// counts reports whether somebody may reach the host by the address: not by one of link scope, such as IPv6 gives every
// device.
func (a address) counts() bool { return a.scope < unix.RT_SCOPE_LINK }

// addresses lists the namespace's addresses that count.
func (a *asker) addresses() (addresses, error) {
	for range dumpTries {
		req := nl.NewNetlinkRequest(unix.RTM_GETADDR, unix.NLM_F_DUMP)
		req.AddData(nl.NewIfAddrmsg(unix.AF_UNSPEC))
		all := addresses{}
		err := a.execute(req, unix.RTM_NEWADDR, func(b []byte) error {
			one, err := parseAddress(b)
			if err == nil && one.counts() {
				all.add(one)
			}
			return err
		})
		if errors.Is(err, nl.ErrDumpInterrupted) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the host's addresses: %w", err)
		}
		return all, nil
	}
	return nil, fmt.Errorf("list the host's addresses: they changed during each of %d attempts", dumpTries)
}

// note adds or removes an address, and returns whether the device's set of addresses changed.
func (h *Host) note(a address, gone bool) (changed bool) {
	if !a.counts() || h.addresses[a.index][a] != gone {
		return false
	}
	clear(h.shown)
	if gone {
		delete(h.addresses[a.index], a)
	} else {
		h.addresses.add(a)
	}
	return true
}

// addresses contains, by device, the host's own addresses that count.
type addresses map[uint32]map[address]bool

func (all addresses) add(a address) {
	if all[a.index] == nil {
		all[a.index] = map[address]bool{}
	}
	all[a.index][a] = true
}

// same reports whether both are the same addresses. A device that lost its last address is as one that had none.
func (all addresses) same(others addresses) bool {
	none := func(_ uint32, has map[address]bool) bool { return len(has) == 0 }
	maps.DeleteFunc(all, none)
	maps.DeleteFunc(others, none)
	return maps.EqualFunc(all, others, maps.Equal)
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
