package hostdev

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Tunnel is a VXLAN device that takes the outer addresses and the VNI of each frame from the program that sends it
// there (external mode), and tells those of a frame that arrives to the program that reads it.
type Tunnel struct {
	Name  string
	Port  uint16 // UDP, at which it receives, on all addresses of IPv4 and IPv6
	Alias string // shows an operator, and a later agent, to whom it belongs
}

// tunnelMTU lets every frame pass: the program knows what fits the underlay, and the device would drop without a word.
const tunnelMTU = 65000

// CreateTunnel makes the device, down, and adds it to the view. The error of a UDP port that is in use comes when the
// device is set up.
func (h *Host) CreateTunnel(t Tunnel) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = t.Name, tunnelMTU
	v := &netlink.Vxlan{LinkAttrs: attrs, FlowBased: true, Port: int(t.Port)}
	if err := h.set.LinkAdd(v); err != nil {
		return fmt.Errorf("create the tunnel's device %s: %w", t.Name, err)
	}
	l, err := h.set.LinkByName(t.Name)
	if err == nil {
		err = h.set.LinkSetAlias(l, t.Alias)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("mark device %s as Heddle's: %w", t.Name, err), h.set.LinkDel(v))
	}
	return refreshName(h, t.Name)
}

// Holder returns the device that has an address of more than link scope; false if the host does not have it.
func (h *Host) Holder(a netip.Addr) (Device, bool, error) {
	for index, list := range h.addresses {
		for own := range list {
			if own.addr() == a {
				return h.DeviceAt(index)
			}
		}
	}
	return Device{}, false, nil
}

// addr returns the address itself.
func (a address) addr() netip.Addr {
	if a.family == unix.AF_INET {
		return netip.AddrFrom4([4]byte(a.ip[:4]))
	}
	return netip.AddrFrom16(a.ip)
}
