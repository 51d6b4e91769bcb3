package spec

import (
	"fmt"
	"math"
	"net/netip"
)

// localTable is the kernel's own table of the host's addresses.
const localTable = 255

// routeRules check the default routes that host ports have.
type routeRules struct {
	*validator
	taken map[routeKey]string
}

// routeKey is what two default routes of a host can't have both.
type routeKey struct {
	six           bool
	metric, table int
}

// newRouteRules is for the ports of one host.
func newRouteRules(v *validator) routeRules { return routeRules{v, map[routeKey]string{}} }

// check checks a port's route. Pools are the networks from which it will have addresses, beside its own.
func (v routeRules) check(a at, p *Port, pools []string) {
	if p.ActualRole() != Host {
		v.none(a, p, "only a host port has this: set role: host, or leave it out (a vnic's owner sets its own)")
		return
	}
	if p.Gateway == "" {
		v.none(a, p, "it is for the route by a gateway: give gateway, or leave it out")
		return
	}
	if p.Metric < 0 || p.Metric > math.MaxInt32 {
		v.fault(a.field("metric"), fmt.Sprint(p.Metric), "a metric is 0 to %d", math.MaxInt32)
	}
	if p.Table < 0 || p.Table > math.MaxInt32 || p.Table == localTable {
		v.fault(a.field("table"), fmt.Sprint(p.Table), "a routing table is 1 to %d, and not %d, which is the kernel's "+
			"own", math.MaxInt32, localTable)
	}
	gateway, err := netip.ParseAddr(p.Gateway)
	if err != nil || gateway.Is4In6() || gateway.Zone() != "" || gateway.IsUnspecified() || gateway.IsMulticast() ||
		gateway.IsLoopback() {
		v.fault(a.field("gateway"), shown(p.Gateway), "it is the address of a router, such as 192.0.2.1")
		return
	}
	if why := nearTo(gateway, p.Addresses, pools); why != "" {
		v.fault(a.field("gateway"), shown(p.Gateway), "%s", why)
		return
	}
	table := p.Table
	if table == 0 {
		table = mainTable
	}
	key := routeKey{gateway.Is6(), p.Metric, table}
	if other, dup := v.taken[key]; dup {
		v.fault(a.field("gateway"), shown(p.Gateway), "host port %s has a default route with the same metric: give "+
			"one of them another metric, or another table", other)
		return
	}
	v.taken[key] = p.Name
}

// mainTable is the table of a route that names none.
const mainTable = 254

// none checks that a port has nothing of a route.
func (v routeRules) none(a at, p *Port, why string) {
	if p.Gateway != "" {
		v.fault(a.field("gateway"), shown(p.Gateway), "%s", why)
	}
	if p.Metric != 0 {
		v.fault(a.field("metric"), fmt.Sprint(p.Metric), "%s", why)
	}
	if p.Table != 0 {
		v.fault(a.field("table"), fmt.Sprint(p.Table), "%s", why)
	}
}

// nearTo says why a gateway can't be reached by an interface with these addresses.
func nearTo(gateway netip.Addr, addresses, pools []string) string {
	if gateway.IsLinkLocalUnicast() {
		return ""
	}
	near := false
	for _, s := range addresses {
		prefix, msg := checkAddress(s)
		if msg == "" && prefix.Addr() == gateway {
			return "it is the port's own address: give that of the router"
		}
		near = near || msg == "" && prefix.Masked().Contains(gateway)
	}
	for _, s := range pools {
		pool, err := ParsePool(s)
		if err == nil && pool.Contains(gateway) {
			return "it lies in pool " + s + ", which may give it to a host: take a range without it"
		}
		near = near || err == nil && netip.PrefixFrom(pool.First, pool.Bits).Masked().Contains(gateway)
	}
	if !near {
		return "it is in the network of none of the port's addresses: give the router's address there, or the port " +
			"an address in its network"
	}
	return ""
}
