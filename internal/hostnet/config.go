// Package hostnet reads what the host's own IP stack has on a device — addresses, routes, permanent neighbours — and moves it to
// another device, as it is: every message of the kernel is kept whole and sent back with the device changed. It works in the network
// namespace of the calling thread.
package hostnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Object is one address, route or neighbour: the kernel's message about it, without the netlink header, and its text for people.
type Object struct {
	Message []byte `json:"message"`
	Text    string `json:"text"`
}

// Config is what a device has. It can be written down and used by a later process of the same boot.
type Config struct {
	Addresses []Object `json:"addresses,omitempty"`
	// Routes are those that the kernel does not make from addresses itself; those without a gateway come first.
	Routes     []Object `json:"routes,omitempty"`
	Neighbours []Object `json:"neighbours,omitempty"`
	// Prefixes are the addresses as a configuration file writes them.
	Prefixes []string `json:"prefixes,omitempty"`
	// Gateways are the default gateways.
	Gateways []netip.Addr `json:"gateways,omitempty"`
	// Fixed are neighbours whose MAC is set by hand: whether they answer cannot be told from the neighbour table.
	Fixed []netip.Addr `json:"fixed,omitempty"`
}

// Net is the host's network namespace.
type Net struct{}

// attributes of the messages, which begin after a header of a fixed size.
const (
	addressHeader   = unix.SizeofIfAddrmsg
	routeHeader     = unix.SizeofRtMsg
	neighbourHeader = 12 // struct ndmsg
	rtaNextHop      = 30 // RTA_NH_ID of linux/rtnetlink.h
)

// Read reads what the device has, apart from what the kernel makes by itself: IPv6 link-local addresses, connected and local routes. A
// route that cannot be moved alone is an error that says what to do.
func (Net) Read(index uint32) (*Config, error) {
	c := &Config{}
	for _, read := range []func(*Config, uint32) error{readAddresses, readRoutes, readNeighbours} {
		if err := read(c, index); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// dump asks for all messages of a kind; one that was interrupted by a change is asked for again.
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
	for _, b := range all {
		if len(b) < addressHeader || binary.NativeEndian.Uint32(b[4:]) != index {
			continue
		}
		ip, ok := addressOf(b)
		if !ok || ip.Is6() && ip.IsLinkLocalUnicast() {
			continue
		}
		p := netip.PrefixFrom(ip, int(b[1]))
		c.Addresses = append(c.Addresses, Object{b, "address " + p.String()})
		c.Prefixes = append(c.Prefixes, p.String())
	}
	return nil
}

// addressOf is the host's own end: IFA_LOCAL where there is one.
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
	slices.SortStableFunc(c.Routes, func(a, b Object) int {
		return len(attribute(a.Message, routeHeader, unix.RTA_GATEWAY)) - len(attribute(b.Message, routeHeader, unix.RTA_GATEWAY))
	})
	return nil
}

// route takes a route in, where it is the device's and the kernel does not make it by itself.
func (c *Config) route(b []byte, index uint32) error {
	const cloned = 0x200 // RTM_F_CLONED: a cache entry
	if len(b) < routeHeader || binary.NativeEndian.Uint32(b[8:])&cloned != 0 || b[7] != unix.RTN_UNICAST {
		return nil
	}
	if hops := attribute(b, routeHeader, unix.RTA_MULTIPATH); usesHop(hops, index) {
		return fmt.Errorf("%s has several next hops, one of them by this device: it cannot be moved as a whole; replace it by a route with one next hop for the time of the adoption", routeText(b))
	}
	if oif := attribute(b, routeHeader, unix.RTA_OIF); len(oif) != 4 || binary.NativeEndian.Uint32(oif) != index || b[5] == unix.RTPROT_KERNEL {
		return nil
	}
	if attribute(b, routeHeader, rtaNextHop) != nil {
		return fmt.Errorf("%s uses a next-hop object (ip nexthop), which may have other routes: replace it by a plain route for the time of the adoption", routeText(b))
	}
	c.Routes = append(c.Routes, Object{b, routeText(b)})
	if gw, ok := netip.AddrFromSlice(attribute(b, routeHeader, unix.RTA_GATEWAY)); ok && b[1] == 0 && !slices.Contains(c.Gateways, gw) {
		c.Gateways = append(c.Gateways, gw)
	}
	return nil
}

// usesHop looks for the device in the value of RTA_MULTIPATH, a list of struct rtnexthop.
func usesHop(b []byte, index uint32) bool {
	for len(b) >= 8 {
		size := int(binary.NativeEndian.Uint16(b))
		if binary.NativeEndian.Uint32(b[4:]) == index {
			return true
		}
		if size < 8 || size > len(b) {
			return false
		}
		b = b[min(len(b), (size+3)&^3):]
	}
	return false
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
	if t := attribute(b, routeHeader, unix.RTA_TABLE); len(t) == 4 && binary.NativeEndian.Uint32(t) != unix.RT_TABLE_MAIN {
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
		if !ok || neighbourIndex(b) != index || neighbourState(b)&unix.NUD_PERMANENT == 0 || ip.IsMulticast() || b[0] != unix.AF_INET && b[0] != unix.AF_INET6 {
			continue
		}
		c.Neighbours = append(c.Neighbours, Object{b, "neighbour " + ip.String()})
		c.Fixed = append(c.Fixed, ip)
	}
	return nil
}

func neighbourIndex(b []byte) uint32 { return binary.NativeEndian.Uint32(b[4:]) }
func neighbourState(b []byte) uint16 { return binary.NativeEndian.Uint16(b[8:]) }

// attribute is the value of a message's attribute, nil without one.
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
