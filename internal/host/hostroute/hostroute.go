package hostroute

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Protocol marks Heddle's routes: "ip route show proto 72".
const Protocol = 72

// usualMetric6 is the metric that the kernel takes for an IPv6 route without one.
const usualMetric6 = 1024

// Route is a default route of an interface.
type Route struct {
	// Gateway is where frames go; its family is that of the route.
	Gateway netip.Addr
	// Metric is the route's priority, the smaller the better; 0 is the kernel's own: 0 for IPv4, 1024 for IPv6.
	Metric uint32
	// Table is the number of the routing table; 0 is the main one.
	Table uint32
}

// String is the route as people write it: "default via 192.0.2.1 metric 100 table 254".
func (r Route) String() string {
	return fmt.Sprintf("default via %s metric %d table %d", r.Gateway, r.Metric, r.Table)
}

// normal is the route as the kernel lists it.
func (r Route) normal() Route {
	if r.Table == 0 {
		r.Table = unix.RT_TABLE_MAIN
	}
	if r.Metric == 0 && r.Gateway.Is6() {
		r.Metric = usualMetric6
	}
	return r
}

// Set makes the routes that Heddle has on an interface those of a list, in the handle's network namespace, and returns
// those that were not there. The interface has to be up.
func Set(h *netlink.Handle, index uint32, want ...Route) (added []Route, err error) {
	for i := range want {
		want[i] = want[i].normal()
	}
	have, err := defaults(h, index)
	if err != nil {
		return nil, err
	}
	for _, f := range have {
		if f.own && !slices.Contains(want, f.route) {
			if err := h.RouteDel(f.route.kernel(index)); err != nil && !errors.Is(err, unix.ESRCH) {
				return nil, fmt.Errorf("remove the route %s: %w", f.route, err)
			}
		}
	}
	for _, w := range want {
		if slices.ContainsFunc(have, func(f found) bool { return f.route == w }) {
			continue // also one of others, such as one that was adopted
		}
		err := h.RouteAdd(w.kernel(index))
		if errors.Is(err, unix.EEXIST) {
			err = errors.New("another default route has this metric in this table: give this one another metric, or " +
				"remove the other (ip route show default)")
		}
		if err != nil {
			return added, fmt.Errorf("set the route %s: %w", w, err)
		}
		added = append(added, w)
	}
	return added, nil
}

// found is a default route of an interface, and whether Heddle set it.
type found struct {
	route Route
	own   bool
}

// listTries is how often the routes are listed while they change.
const listTries = 5

// defaults are the default routes by gateway that an interface has, in every table.
func defaults(h *netlink.Handle, index uint32) (list []found, err error) {
	var all []netlink.Route
	for range listTries {
		all, err = h.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{LinkIndex: int(index)},
			netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list the routes of the interface: %w", err)
	}
	for _, r := range all {
		ones := 0
		if r.Dst != nil {
			ones, _ = r.Dst.Mask.Size()
		}
		gateway, ok := netip.AddrFromSlice(r.Gw)
		if ones == 0 && ok && r.Type == unix.RTN_UNICAST {
			list = append(list, found{Route{gateway.Unmap(), uint32(r.Priority), uint32(r.Table)},
				r.Protocol == Protocol})
		}
	}
	return list, nil
}

// kernel is the route for the kernel.
func (r Route) kernel(index uint32) *netlink.Route {
	family := netlink.FAMILY_V4
	if r.Gateway.Is6() {
		family = netlink.FAMILY_V6
	}
	return &netlink.Route{LinkIndex: int(index), Family: family, Gw: r.Gateway.AsSlice(), Priority: int(r.Metric),
		Table: int(r.Table), Protocol: Protocol}
}
