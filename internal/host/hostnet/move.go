package hostnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Put adds all of the configuration to a device, whichever other device has it now. What the device already has is no
// error, so that Put may be repeated after a crash; a failure does not stop the rest. IPv6 addresses are usable at
// once: they have been in use, so that duplicate address detection is not needed.
func (n Net) Put(c *Config, index uint32, name string) error {
	return errors.Join(n.PutAddresses(c, index, name), n.PutRoutes(c, index, name))
}

// PutAddresses adds the addresses to a device. An address whose lifetime has ended since it was read is left out.
func (Net) PutAddresses(c *Config, index uint32, name string) error {
	age, err := c.age()
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range c.Addresses {
		body, lives := addressFor(o.Message, index, name, age)
		if !lives {
			continue
		}
		if err := send(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, body, unix.EEXIST); err != nil {
			errs = append(errs, fmt.Errorf("give device %s the %s: %w", name, o.Text, err))
		}
	}
	return errors.Join(errs...)
}

// PutRoutes adds to a device what depends on the addresses: routes, neighbours and policy rules.
func (Net) PutRoutes(c *Config, index uint32, name string) error {
	age, err := c.age()
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range c.Routes {
		if err := send(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, routeFor(o.Message, c.Index, index, age),
			unix.EEXIST); err != nil {
			errs = append(errs, fmt.Errorf("give device %s the %s: %w", name, o.Text, err))
		}
	}
	for _, o := range c.Neighbours {
		if err := send(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE,
			neighbourFor(o.Message, index)); err != nil {
			errs = append(errs, fmt.Errorf("give device %s the %s: %w", name, o.Text, err))
		}
	}
	for _, o := range c.Rules {
		if err := send(unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, ruleFor(o.Message, c.Device, name),
			unix.EEXIST); err != nil {
			errs = append(errs, fmt.Errorf("have device %s in the %s: %w", name, o.Text, err))
		}
	}
	return errors.Join(errs...)
}

// Drop removes all of the configuration from a device. What the device does not have is no error.
func (n Net) Drop(c *Config, index uint32, name string) error {
	return errors.Join(n.DropRoutes(c, index, name), n.DropAddresses(c, index, name))
}

// DropAddresses removes the addresses from a device.
func (Net) DropAddresses(c *Config, index uint32, name string) error {
	var errs []error
	for _, o := range slices.Backward(c.Addresses) {
		// Without its label: the kernel would compare it, and the address may have any, such as another name of the
		// device.
		body, _ := addressFor(o.Message, index, "", 0)
		if err := send(unix.RTM_DELADDR, 0, body, unix.EADDRNOTAVAIL, unix.ENODEV); err != nil {
			errs = append(errs, fmt.Errorf("take the %s from device %s: %w", o.Text, name, err))
		}
	}
	return errors.Join(errs...)
}

// DropRoutes removes from a device what PutRoutes adds.
func (Net) DropRoutes(c *Config, index uint32, name string) error {
	var errs []error
	for _, o := range slices.Backward(c.Rules) {
		if err := send(unix.RTM_DELRULE, 0, ruleFor(o.Message, c.Device, name), unix.ENOENT); err != nil {
			errs = append(errs, fmt.Errorf("take device %s out of the %s: %w", name, o.Text, err))
		}
	}
	for _, o := range slices.Backward(c.Routes) {
		if err := send(unix.RTM_DELROUTE, 0, routeFor(o.Message, c.Index, index, 0), unix.ESRCH, unix.ENOENT,
			unix.ENODEV); err != nil {
			errs = append(errs, fmt.Errorf("take the %s from device %s: %w", o.Text, name, err))
		}
	}
	for _, o := range slices.Backward(c.Neighbours) {
		if err := send(unix.RTM_DELNEIGH, 0, neighbourFor(o.Message, index), unix.ENOENT, unix.ENODEV); err != nil {
			errs = append(errs, fmt.Errorf("take the %s from device %s: %w", o.Text, name, err))
		}
	}
	return errors.Join(errs...)
}

// age returns how long ago the configuration was read.
func (c *Config) age() (time.Duration, error) {
	now, err := Boottime()
	return now - c.ReadAt, err
}

// raw is a message's body as it is sent.
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

// addressFor returns the address for another device, with a lifetime reduced by age; lives is false if its lifetime has
// ended. The label of an IPv4 address begins with its device's name; without a name it has none.
func addressFor(b []byte, index uint32, name string, age time.Duration) (body []byte, lives bool) {
	out := slices.Clone(b[:addressHeader])
	binary.NativeEndian.PutUint32(out[4:], index)
	six, lives := b[0] == unix.AF_INET6, true
	if six {
		out[2] |= unix.IFA_F_NODAD
	}
	return each(out, b[addressHeader:], func(kind uint16, v []byte) []byte {
		switch {
		case kind == unix.IFA_LABEL && name == "":
			return nil
		case kind == unix.IFA_LABEL:
			return relabel(v, name)
		case kind == unix.IFA_FLAGS && six && len(v) == 4:
			return binary.NativeEndian.AppendUint32(nil, binary.NativeEndian.Uint32(v)|unix.IFA_F_NODAD)
		case kind == unix.IFA_CACHEINFO && len(v) >= 16:
			v, lives = lifetimes(v, age)
		}
		return v
	}), lives
}

// lifetimes returns the lifetimes of a struct ifa_cacheinfo after age has passed; false if none is left.
func lifetimes(v []byte, age time.Duration) ([]byte, bool) {
	const forever = 1<<32 - 1
	out := slices.Clone(v)
	passed := uint32(max(0, age/time.Second))
	for at := 0; at < 8; at += 4 { // ifa_prefered, ifa_valid
		if t := binary.NativeEndian.Uint32(v[at:]); t != forever {
			binary.NativeEndian.PutUint32(out[at:], t-min(t, passed))
		}
	}
	return out, binary.NativeEndian.Uint32(out[4:]) > 0
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

// routeFor returns the route with another device in place of from. It leaves out how long the kernel has known the
// route and whether its link is up, but keeps how long an IPv6 route is still valid.
func routeFor(b []byte, from, index uint32, age time.Duration) []byte {
	out := slices.Clone(b[:routeHeader])
	flags := binary.NativeEndian.Uint32(out[8:])
	binary.NativeEndian.PutUint32(out[8:], flags&unix.RTNH_F_ONLINK)
	var left []byte
	out = each(out, b[routeHeader:], func(kind uint16, v []byte) []byte {
		switch kind {
		case unix.RTA_OIF:
			return binary.NativeEndian.AppendUint32(nil, index)
		case unix.RTA_MULTIPATH:
			return hopsFor(v, from, index)
		case unix.RTA_CACHEINFO:
			left = expiry(v, age)
			return nil
		}
		return v
	})
	if left != nil && b[0] == unix.AF_INET6 {
		out = appendAttribute(out, rtaExpires, left)
	}
	return out
}

// expiry returns the RTA_EXPIRES, in seconds, for a struct rta_cacheinfo, which has it in ticks of 10 ms; nil for none.
func expiry(v []byte, age time.Duration) []byte {
	if len(v) < 12 {
		return nil
	}
	ticks := int32(binary.NativeEndian.Uint32(v[8:]))
	if ticks <= 0 {
		return nil
	}
	seconds := time.Duration(ticks)*10*time.Millisecond - age
	return binary.NativeEndian.AppendUint32(nil, uint32(max(1, seconds/time.Second)))
}

// hopsFor changes the next hops that use one device to the other.
func hopsFor(v []byte, from, index uint32) []byte {
	out := slices.Clone(v)
	for _, h := range hops(out) { // they share the clone's memory
		if h.index() == from {
			binary.NativeEndian.PutUint32(h[4:], index)
		}
		h[2] &= unix.RTNH_F_ONLINK
	}
	return out
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

// each appends the attributes with the values that change returns; those for which it returns none are left out.
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
		to = appendAttribute(to, kind, v)
	}
	return to
}

func appendAttribute(to []byte, kind uint16, v []byte) []byte {
	to = binary.NativeEndian.AppendUint16(to, uint16(unix.SizeofRtAttr+len(v)))
	to = append(binary.NativeEndian.AppendUint16(to, kind), v...)
	for len(to)%4 != 0 {
		to = append(to, 0)
	}
	return to
}
