package hostnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Put gives a device all of it, beside whoever has it now. What the device has already is no error, so that it may be done again
// after a crash. IPv6 addresses are usable at once: they have been in use, so they are not searched for duplicates.
func (Net) Put(c *Config, index uint32, name string) error {
	for _, o := range c.Addresses {
		if err := send(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, addressFor(o.Message, index, name), unix.EEXIST); err != nil {
			return fmt.Errorf("give device %s the %s: %w", name, o.Text, err)
		}
	}
	for _, o := range c.Routes {
		if err := send(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, routeFor(o.Message, index), unix.EEXIST); err != nil {
			return fmt.Errorf("give device %s the %s: %w", name, o.Text, err)
		}
	}
	for _, o := range c.Neighbours {
		if err := send(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, neighbourFor(o.Message, index)); err != nil {
			return fmt.Errorf("give device %s the %s: %w", name, o.Text, err)
		}
	}
	return nil
}

// Drop takes all of it from a device. What the device does not have is no error.
func (Net) Drop(c *Config, index uint32, name string) error {
	for _, o := range slices.Backward(c.Routes) {
		if err := send(unix.RTM_DELROUTE, 0, routeFor(o.Message, index), unix.ESRCH, unix.ENOENT); err != nil {
			return fmt.Errorf("take the %s from device %s: %w", o.Text, name, err)
		}
	}
	for _, o := range slices.Backward(c.Addresses) {
		if err := send(unix.RTM_DELADDR, 0, addressFor(o.Message, index, name), unix.EADDRNOTAVAIL); err != nil {
			return fmt.Errorf("take the %s from device %s: %w", o.Text, name, err)
		}
	}
	for _, o := range slices.Backward(c.Neighbours) {
		if err := send(unix.RTM_DELNEIGH, 0, neighbourFor(o.Message, index), unix.ENOENT); err != nil {
			return fmt.Errorf("take the %s from device %s: %w", o.Text, name, err)
		}
	}
	return nil
}

// raw is a message's body as it goes out.
type raw []byte

func (r raw) Len() int          { return len(r) }
func (r raw) Serialize() []byte { return r }

func send(request, flags int, body []byte, fine ...error) error {
	req := nl.NewNetlinkRequest(request, flags|unix.NLM_F_ACK)
	req.AddData(raw(body))
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	for _, f := range fine {
		if errors.Is(err, f) {
			return nil
		}
	}
	return err
}

// addressFor is the address on another device. The label of an IPv4 address begins with its device's name.
func addressFor(b []byte, index uint32, name string) []byte {
	out := slices.Clone(b[:addressHeader])
	binary.NativeEndian.PutUint32(out[4:], index)
	six := b[0] == unix.AF_INET6
	if six {
		out[2] |= unix.IFA_F_NODAD
	}
	return each(out, b[addressHeader:], func(kind uint16, v []byte) []byte {
		switch {
		case kind == unix.IFA_LABEL:
			return relabel(v, name)
		case kind == unix.IFA_FLAGS && six && len(v) == 4:
			return binary.NativeEndian.AppendUint32(nil, binary.NativeEndian.Uint32(v)|unix.IFA_F_NODAD)
		}
		return v
	})
}

// relabel keeps what comes after the colon: "eth0:vip" becomes "vmk0:vip".
func relabel(v []byte, name string) []byte {
	suffix := []byte{0}
	if i := slices.Index(v, ':'); i >= 0 {
		suffix = v[i:]
	}
	out := append([]byte(name), suffix...)
	if len(out) > unix.IFNAMSIZ {
		return append([]byte(name), 0)
	}
	return out
}

// routeFor is the route by another device. How long the kernel has known it is not part of it, nor whether its link is up.
func routeFor(b []byte, index uint32) []byte {
	out := slices.Clone(b[:routeHeader])
	flags := binary.NativeEndian.Uint32(out[8:])
	binary.NativeEndian.PutUint32(out[8:], flags&unix.RTNH_F_ONLINK)
	return each(out, b[routeHeader:], func(kind uint16, v []byte) []byte {
		switch kind {
		case unix.RTA_OIF:
			return binary.NativeEndian.AppendUint32(nil, index)
		case unix.RTA_CACHEINFO:
			return nil
		}
		return v
	})
}

func neighbourFor(b []byte, index uint32) []byte {
	out := slices.Clone(b[:neighbourHeader])
	binary.NativeEndian.PutUint32(out[4:], index)
	return each(out, b[neighbourHeader:], func(kind uint16, v []byte) []byte {
		if kind == unix.NDA_CACHEINFO || kind == unix.NDA_PROBES {
			return nil
		}
		return v
	})
}

// each appends the attributes, with the values that change gives; those without one are left out.
func each(to, attrs []byte, change func(kind uint16, v []byte) []byte) []byte {
	for len(attrs) >= unix.SizeofRtAttr {
		size, kind := int(binary.NativeEndian.Uint16(attrs)), binary.NativeEndian.Uint16(attrs[2:])
		if size < unix.SizeofRtAttr || size > len(attrs) {
			break
		}
		v := attrs[unix.SizeofRtAttr:size]
		attrs = attrs[min(len(attrs), (size+3)&^3):]
		if v = change(kind&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), v); v == nil {
			continue
		}
		to = binary.NativeEndian.AppendUint16(to, uint16(unix.SizeofRtAttr+len(v)))
		to = binary.NativeEndian.AppendUint16(to, kind)
		to = append(to, v...)
		for len(to)%4 != 0 {
			to = append(to, 0)
		}
	}
	return to
}
