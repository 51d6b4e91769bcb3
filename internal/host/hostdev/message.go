package hostdev

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"heddle/internal/plan"
)

// iflaTunType is IFLA_TUN_TYPE of linux/if_link.h, inside IFLA_INFO_DATA of a "tun" device; iffTap is its value for a
// tap.
const (
	iflaTunType = 3
	iffTap      = 2
)

var errShort = errors.New("netlink: link message shorter than its header")

// parseLink reads the body of an RTM_NEWLINK or RTM_DELLINK message.
func parseLink(b []byte) (link, error) {
	if len(b) < unix.SizeofIfInfomsg {
		return link{}, errShort
	}
	info := nl.DeserializeIfInfomsg(b)
	l := link{index: uint32(info.Index), peerNS: localNS}
	l.notEthernet = info.Type != unix.ARPHRD_ETHER && info.Type != unix.ARPHRD_LOOPBACK
	l.end.AdminUp = info.Flags&unix.IFF_UP != 0
	l.end.Carrier = info.Flags&unix.IFF_LOWER_UP != 0
	l.end.FlagPromiscuous = info.Flags&unix.IFF_PROMISC != 0
	l.end.Promiscuous = l.end.FlagPromiscuous
	if err := eachAttribute(b[unix.SizeofIfInfomsg:], l.attribute); err != nil {
		return link{}, fmt.Errorf("netlink: link message: %w", err)
	}
	return l, nil
}

// attribute reads one attribute; unknown ones are skipped.
func (l *link) attribute(kind uint16, v []byte) error {
	switch kind {
	case unix.IFLA_IFNAME:
		l.name = cString(v)
	case unix.IFLA_IFALIAS:
		l.alias = cString(v)
	case unix.IFLA_ADDRESS:
		if len(v) == 6 {
			l.end.MAC = plan.MAC(v)
		}
	case unix.IFLA_PERM_ADDRESS:
		if len(v) == 6 {
			l.permanent = plan.MAC(v)
		}
	case unix.IFLA_MTU:
		l.end.MTU = int(word(v))
	case unix.IFLA_CARRIER_DOWN_COUNT:
		l.end.CarrierDowns = word(v)
	case unix.IFLA_LINK:
		l.peer = word(v)
	case unix.IFLA_MASTER:
		l.master = word(v)
	case unix.IFLA_LINK_NETNSID:
		l.peerNS = int32(word(v))
	case unix.IFLA_PROMISCUITY:
		l.end.Promiscuous = l.end.Promiscuous || word(v) > 0
	case unix.IFLA_LINKINFO:
		return l.linkInfo(v)
	case unix.IFLA_XDP:
		return l.xdpInfo(v)
	}
	return nil
}

// linkInfo reads the kind of a virtual device; for a tun device also whether it is a tap, and for a bond its active
// member.
func (l *link) linkInfo(b []byte) error {
	var data []byte
	err := eachAttribute(b, func(kind uint16, v []byte) error {
		switch kind {
		case unix.IFLA_INFO_KIND:
			l.kind = cString(v)
		case unix.IFLA_INFO_DATA:
			data = v
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("link info: %w", err)
	}
	switch l.kind {
	case "vxlan":
		return l.vxlanInfo(data)
	case "ipvlan", "ipvtap":
		l.shared = true
	case "macvlan", "macvtap":
		return l.macvlanInfo(data)
	}
	if l.kind != "tun" && l.kind != "bond" {
		return nil
	}
	err = eachAttribute(data, func(kind uint16, v []byte) error {
		switch {
		case l.kind == "tun" && kind == iflaTunType && len(v) >= 1:
			l.tap = v[0] == iffTap
		case l.kind == "bond" && kind == nl.IFLA_BOND_ACTIVE_SLAVE:
			l.active = word(v)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s info: %w", l.kind, err)
	}
	return nil
}

// macvlanInfo reads whether a macvlan passes everything through, as its only one of the device under it can.
func (l *link) macvlanInfo(b []byte) error {
	l.shared = true
	err := eachAttribute(b, func(kind uint16, v []byte) error {
		if kind == nl.IFLA_MACVLAN_MODE && word(v) == nl.MACVLAN_MODE_PASSTHRU {
			l.shared = false
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s info: %w", l.kind, err)
	}
	return nil
}

// vxlanInfo reads the UDP port of a VXLAN device in external mode.
func (l *link) vxlanInfo(b []byte) error {
	var port uint16
	external := false
	err := eachAttribute(b, func(kind uint16, v []byte) error {
		switch {
		case kind == nl.IFLA_VXLAN_PORT && len(v) >= 2:
			port = binary.BigEndian.Uint16(v)
		case kind == nl.IFLA_VXLAN_FLOWBASED && len(v) >= 1:
			external = v[0] != 0
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("vxlan info: %w", err)
	}
	if external {
		l.tunnelPort = port
	}
	return nil
}

// xdpInfo reads which XDP program is on the device; if there are programs of several modes, one of them.
func (l *link) xdpInfo(b []byte) error {
	err := eachAttribute(b, func(kind uint16, v []byte) error {
		switch kind {
		case unix.IFLA_XDP_PROG_ID, unix.IFLA_XDP_DRV_PROG_ID, unix.IFLA_XDP_SKB_PROG_ID, unix.IFLA_XDP_HW_PROG_ID:
			l.xdp = word(v)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("xdp info: %w", err)
	}
	return nil
}

func cString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// word reads a 4-byte attribute in the host's byte order; a shorter one is 0.
func word(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b)
}
