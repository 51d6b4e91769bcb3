package hostnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Object is one address, route or neighbour: the kernel's message about it, without the netlink header, and its text
// for people.
type Object struct {
	Message []byte `json:"message"`
	Text    string `json:"text"`
}

// Config is the configuration of a device. It can be stored and used by a later process of the same boot.
type Config struct {
	// Device and Index identify the device that had the configuration when it was read.
	Device    string   `json:"device"`
	Index     uint32   `json:"ifindex"`
	Addresses []Object `json:"addresses,omitempty"`
	// Routes are the routes that the kernel does not derive from addresses itself; those without a gateway come first.
	Routes     []Object `json:"routes,omitempty"`
	Neighbours []Object `json:"neighbours,omitempty"`
	// Rules are the policy rules that name the device as iif or oif.
	Rules []Object `json:"rules,omitempty"`
	// ReadAt is when the configuration was read (CLOCK_BOOTTIME): lifetimes are shorter by the time since then when it
	// is applied.
	ReadAt time.Duration `json:"readAt"`
	// Prefixes are the addresses in the form of a configuration file.
	Prefixes []string `json:"prefixes,omitempty"`
	// Gateways are the default gateways.
	Gateways []netip.Addr `json:"gateways,omitempty"`
	// Fixed are the neighbours with a static MAC: the neighbour table does not show whether they answer.
	Fixed []netip.Addr `json:"fixed,omitempty"`
	// survey: routes that cannot be moved by themselves are left out, and are no error.
	survey bool
}

// Net is the host's network namespace.
type Net struct{}

// Attributes of the messages, which begin after a header of a fixed size.
const (
	addressHeader   = unix.SizeofIfAddrmsg
	routeHeader     = unix.SizeofRtMsg
	neighbourHeader = 12 // struct ndmsg
	rtaExpires      = 23 // RTA_EXPIRES of linux/rtnetlink.h
	rtaNextHop      = 30 // RTA_NH_ID
)

// Read reads the device's configuration, without what the kernel makes by itself: IPv6 link-local addresses, local and
// multicast routes. A route that cannot be moved by itself is an error that says what to do.
func (Net) Read(name string, index uint32) (*Config, error) {
	return read(&Config{Device: name, Index: index})
}

// Survey is Read for a device from which nothing will be moved: of a route that cannot be moved, only the gateway is
// included.
func (Net) Survey(name string, index uint32) (*Config, error) {
	return read(&Config{Device: name, Index: index, survey: true})
}

func read(c *Config) (_ *Config, err error) {
	name, index := c.Device, c.Index
	if c.ReadAt, err = Boottime(); err != nil {
		return nil, err
	}
	for _, read := range []func(*Config, uint32) error{readAddresses, readRoutes, readNeighbours} {
		if err := read(c, index); err != nil {
			return nil, err
		}
	}
	return c, readRules(c, name)
}

// Boottime returns the time since the machine started, including suspended time.
func Boottime() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}

// dump requests all messages of a kind, again if a change interrupted the answer.
func dump(request int, header nl.NetlinkRequestData, answer uint16) ([][]byte, error) {
	for range 8 {
		req := nl.NewNetlinkRequest(request, unix.NLM_F_DUMP)
		req.AddData(header)
		out, err := req.Execute(unix.NETLINK_ROUTE, answer)
		if !errors.Is(err, nl.ErrDumpInterrupted) {
			return out, err
		}
	}
	return nil, errors.New("the host's network changed during each of 8 attempts to read it")
}

func readAddresses(c *Config, index uint32) error {
	all, err := dump(unix.RTM_GETADDR, nl.NewIfAddrmsg(unix.AF_UNSPEC), unix.RTM_NEWADDR)
	if err != nil {
		return fmt.Errorf("read the addresses: %w", err)
	}
	four := 0 // number of IPv4 addresses
	for _, b := range all {
		if len(b) < addressHeader || binary.NativeEndian.Uint32(b[4:]) != index {
			continue
		}
		ip, ok := addressOf(b)
		if !ok || ip.Is6() && ip.IsLinkLocalUnicast() {
			continue
		}
		p := netip.PrefixFrom(ip, int(b[1]))
		o := Object{b, "address " + p.String()}
		if ip.Is6() {
			// the kernel lists the newest first: in reverse order, one added after the other, they are as they were
			c.Addresses = slices.Insert(c.Addresses, four, o)
			c.Prefixes = slices.Insert(c.Prefixes, four, p.String())
			continue
		}
		c.Addresses, c.Prefixes = slices.Insert(c.Addresses, four, o), slices.Insert(c.Prefixes, four, p.String())
		four++
	}
	return nil
}

// addressOf returns the host's own end of an address: IFA_LOCAL if there is one.
func addressOf(b []byte) (netip.Addr, bool) {
	v := attribute(b, addressHeader, unix.IFA_LOCAL)
	if v == nil {
		v = attribute(b, addressHeader, unix.IFA_ADDRESS)
	}
	return netip.AddrFromSlice(v)
}

func readRoutes(c *Config, index uint32) error {
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		header := &nl.RtMsg{RtMsg: unix.RtMsg{Family: uint8(family)}}
		all, err := dump(unix.RTM_GETROUTE, header, unix.RTM_NEWROUTE)
		if err != nil {
			return fmt.Errorf("read the routes: %w", err)
		}
		for _, b := range all {
			if err := c.route(b, index); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(c.Routes, func(a, b Object) int { return hopsOf(a) - hopsOf(b) })
	return nil
}

// hopsOf returns the order of routes: a route through a gateway needs the route to that gateway first.
func hopsOf(o Object) int {
	if attribute(o.Message, routeHeader, unix.RTA_GATEWAY) != nil ||
		attribute(o.Message, routeHeader, unix.RTA_VIA) != nil ||
		attribute(o.Message, routeHeader, unix.RTA_MULTIPATH) != nil {
		return 1
	}
	return 0
}

// route adds a route if it is the device's and the kernel does not make it by itself. It also adds connected routes:
// one that belongs to an address exists when it is added later, but one that a network manager made for an address
// without a route does not.
func (c *Config) route(b []byte, index uint32) error {
	const cloned = 0x200 // RTM_F_CLONED: a cache entry
	if len(b) < routeHeader || binary.NativeEndian.Uint32(b[8:])&cloned != 0 || madeByKernel(b) {
		return nil
	}
	oif := attribute(b, routeHeader, unix.RTA_OIF)
	several := usesHop(attribute(b, routeHeader, unix.RTA_MULTIPATH), index)
	if !several && (len(oif) != 4 || binary.NativeEndian.Uint32(oif) != index) {
		return nil
	}
	if attribute(b, routeHeader, rtaNextHop) != nil && c.survey {
		c.gateways(b, index)
		return nil
	}
	if attribute(b, routeHeader, rtaNextHop) != nil {
		return fmt.Errorf("%s uses a next-hop object (ip nexthop), which may have other routes: replace it by a "+
			"plain route for the time of the adoption", routeText(b))
	}
	if several && b[0] == unix.AF_INET6 { // its next hops are separate routes
		b = withoutOthers(b, index)
	}
	c.Routes = append(c.Routes, Object{b, routeText(b)})
	c.gateways(b, index)
	return nil
}

// gateways adds the gateways of a default route.
func (c *Config) gateways(b []byte, index uint32) {
	for _, gw := range gatewaysOf(b, index) {
		if b[1] == 0 && !slices.Contains(c.Gateways, gw) {
			c.Gateways = append(c.Gateways, gw)
		}
	}
}

// madeByKernel reports whether the kernel makes the route itself, for the device or an address.
func madeByKernel(b []byte) bool {
	if b[5] != unix.RTPROT_KERNEL {
		return false
	}
	to, _ := netip.AddrFromSlice(attribute(b, routeHeader, unix.RTA_DST))
	return b[7] != unix.RTN_UNICAST || to.Is6() && (to.IsLinkLocalUnicast() || to.IsMulticast())
}

// hop is one next hop of a route: a struct rtnexthop and its attributes.
type hop []byte

const hopHeader = unix.SizeofRtNexthop

func (h hop) index() uint32 { return binary.NativeEndian.Uint32(h[4:]) }

// hops splits the value of RTA_MULTIPATH.
func hops(b []byte) (all []hop) {
	for len(b) >= hopHeader {
		size := int(binary.NativeEndian.Uint16(b))
		if size < hopHeader || size > len(b) {
			break
		}
		all = append(all, hop(b[:size]))
		b = b[min(len(b), (size+3)&^3):]
	}
	return all
}

func usesHop(b []byte, index uint32) bool {
	return slices.ContainsFunc(hops(b), func(h hop) bool { return h.index() == index })
}

// withoutOthers returns the route with only those next hops that use the device.
func withoutOthers(b []byte, index uint32) []byte {
	return each(slices.Clone(b[:routeHeader]), b[routeHeader:], func(kind uint16, v []byte) []byte {
		if kind != unix.RTA_MULTIPATH {
			return v
		}
		var kept []byte
		for _, h := range hops(v) {
			if h.index() == index {
				kept = append(kept, h...)
			}
		}
		return kept
	})
}

// gatewaysOf returns the route's gateways behind the device.
func gatewaysOf(b []byte, index uint32) (all []netip.Addr) {
	add := func(v []byte) {
		if gw, ok := netip.AddrFromSlice(v); ok {
			all = append(all, gw)
		}
	}
	add(attribute(b, routeHeader, unix.RTA_GATEWAY))
	if via := attribute(b, routeHeader, unix.RTA_VIA); len(via) > 2 { // struct rtvia: a gateway of the other family
		add(via[2:])
	}
	for _, h := range hops(attribute(b, routeHeader, unix.RTA_MULTIPATH)) {
		if h.index() == index {
			add(attribute(h, hopHeader, unix.RTA_GATEWAY))
		}
	}
	return all
}

func routeText(b []byte) string {
	to := "default"
	if b[1] > 0 {
		ip, _ := netip.AddrFromSlice(attribute(b, routeHeader, unix.RTA_DST))
		to = netip.PrefixFrom(ip, int(b[1])).String()
	}
	text := "route " + to
	if gw, ok := netip.AddrFromSlice(attribute(b, routeHeader, unix.RTA_GATEWAY)); ok {
		text += " via " + gw.String()
	}
	for _, h := range hops(attribute(b, routeHeader, unix.RTA_MULTIPATH)) {
		if gw, ok := netip.AddrFromSlice(attribute(h, hopHeader, unix.RTA_GATEWAY)); ok {
			text += " nexthop via " + gw.String()
		}
	}
	if t := attribute(b, routeHeader, unix.RTA_TABLE); len(t) == 4 &&
		binary.NativeEndian.Uint32(t) != unix.RT_TABLE_MAIN {
		text += fmt.Sprintf(" table %d", binary.NativeEndian.Uint32(t))
	}
	if m := attribute(b, routeHeader, unix.RTA_PRIORITY); len(m) == 4 {
		text += fmt.Sprintf(" metric %d", binary.NativeEndian.Uint32(m))
	}
	return text
}

func readNeighbours(c *Config, index uint32) error {
	all, err := dump(unix.RTM_GETNEIGH, nl.NewIfInfomsg(unix.AF_UNSPEC), unix.RTM_NEWNEIGH)
	if err != nil {
		return fmt.Errorf("read the neighbours: %w", err)
	}
	for _, b := range all {
		ip, ok := netip.AddrFromSlice(attribute(b, neighbourHeader, unix.NDA_DST))
		if !ok || neighbourIndex(b) != index || neighbourState(b)&unix.NUD_PERMANENT == 0 || ip.IsMulticast() ||
			b[0] != unix.AF_INET && b[0] != unix.AF_INET6 {
			continue
		}
		c.Neighbours = append(c.Neighbours, Object{b, "neighbour " + ip.String()})
		c.Fixed = append(c.Fixed, ip)
	}
	return nil
}

func neighbourIndex(b []byte) uint32 { return binary.NativeEndian.Uint32(b[4:]) }
func neighbourState(b []byte) uint16 { return binary.NativeEndian.Uint16(b[8:]) }

// attribute returns the value of a message's attribute, nil if there is none.
func attribute(b []byte, header int, kind uint16) []byte {
	if len(b) < header {
		return nil
	}
	attrs, err := nl.ParseRouteAttr(b[header:])
	if err != nil {
		return nil
	}
	for _, a := range attrs {
		if a.Attr.Type&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER) == kind {
			return a.Value
		}
	}
	return nil
}

// For returns the configuration as if it had been read on another device.
func (c *Config) For(device string, index uint32) *Config {
	out := *c
	out.Device, out.Index = device, index
	out.Addresses, out.Routes, out.Neighbours, out.Rules = nil, nil, nil, nil
	for _, o := range c.Addresses {
		b, _ := addressFor(o.Message, index, device, 0)
		out.Addresses = append(out.Addresses, Object{b, o.Text})
	}
	for _, o := range c.Routes {
		b := slices.Clone(o.Message)
		if v := attribute(b, routeHeader, unix.RTA_OIF); len(v) == 4 { // a part of b
			binary.NativeEndian.PutUint32(v, index)
		}
		for _, h := range hops(attribute(b, routeHeader, unix.RTA_MULTIPATH)) {
			if h.index() == c.Index {
				binary.NativeEndian.PutUint32(h[4:], index)
			}
		}
		out.Routes = append(out.Routes, Object{b, o.Text})
	}
	for _, o := range c.Neighbours {
		out.Neighbours = append(out.Neighbours, Object{neighbourFor(o.Message, index), o.Text})
	}
	for _, o := range c.Rules {
		out.Rules = append(out.Rules, Object{ruleFor(o.Message, c.Device, device), o.Text})
	}
	return &out
}
