package lab

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/scenario"
	"heddle/internal/plan"
)

// end is one end of a veth pair to make.
type end struct {
	ns     *netns.NS
	device string
	mac    plan.MAC // zero: the kernel's choice
}

// cable makes a veth pair between two namespaces and sets both ends up. The devices are made in their own namespaces,
// not in the caller's.
func cable(a, b end, mtu int) error {
	peer, err := b.ns.Handle()
	if err != nil {
		return err
	}
	defer peer.Close()
	err = a.ns.Do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU, attrs.HardwareAddr = a.device, mtu, hardware(a.mac)
		veth := netlink.NewVeth(attrs)
		veth.PeerName, veth.PeerMTU, veth.PeerHardwareAddr = b.device, uint32(mtu), hardware(b.mac)
		veth.PeerNamespace = netlink.NsFd(peer)
		if err := netlink.LinkAdd(veth); err != nil {
			return fmt.Errorf("make link %s/%s – %s/%s: %w", a.ns.Name, a.device, b.ns.Name, b.device, err)
		}
		return setUp(a.device)
	})
	if err != nil {
		return err
	}
	return b.ns.Do(func() error { return setUp(b.device) })
}

func hardware(m plan.MAC) net.HardwareAddr {
	if m.IsZero() {
		return nil
	}
	return m[:]
}

func setUp(device string) error {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find device %s: %w", device, err)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return fmt.Errorf("set device %s up: %w", device, err)
	}
	return nil
}

// address gives a device its addresses and, when gateway is valid, the default route.
func address(ns *netns.NS, device string, addresses []netip.Prefix, gateway netip.Addr) error {
	return ns.Do(func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return fmt.Errorf("find device %s: %w", device, err)
		}
		for _, a := range addresses {
			ip := &net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen())}
			if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: ip}); err != nil {
				return fmt.Errorf("give %s the address %s: %w", device, a, err)
			}
		}
		if !gateway.IsValid() {
			return nil
		}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: gateway.AsSlice()}); err != nil {
			return fmt.Errorf("route by way of %s: %w", gateway, err)
		}
		return nil
	})
}

// bridge makes a Linux bridge of the given name that does nothing but learn and forward, and enslaves the devices to
// it.
func bridge(ns *netns.NS, name string, devices []string) error {
	return ns.Do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		snooping := false // it would hold back multicast until somebody requests it
		br := &netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &snooping}
		if err := netlink.LinkAdd(br); err != nil {
			return fmt.Errorf("make bridge %s: %w", name, err)
		}
		for _, d := range devices {
			l, err := netlink.LinkByName(d)
			if err != nil {
				return fmt.Errorf("find device %s: %w", d, err)
			}
			if err := netlink.LinkSetMaster(l, br); err != nil {
				return fmt.Errorf("put %s into bridge %s: %w", d, name, err)
			}
		}
		return netlink.LinkSetUp(br)
	})
}

// Limits of a shaped link's token bucket. The burst has space for whole segmentation-offloaded frames of 64 KiB at 10
// Gb/s, so that they cross unsplit as on a NIC; on slow links it does not, and they are split as the rate requires.
const (
	burstTime = time.Millisecond
	minBurst  = 16 << 10 // bytes
	queueTime = 4 * time.Millisecond
	minQueue  = 64 << 10 // bytes
	// tick is the unit of a token bucket's size as the kernel takes it (PSCHED_SHIFT 6).
	tick = 64 * time.Nanosecond
)

// shape limits the rate at which frames leave by a device.
func shape(ns *netns.NS, device string, rate scenario.Rate) error {
	bytesPerSecond := uint64(rate) / 8
	burst := max(bytesPerSecond*uint64(burstTime)/uint64(time.Second), minBurst)
	queue := max(bytesPerSecond*uint64(queueTime)/uint64(time.Second), minQueue)
	return ns.Do(func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return fmt.Errorf("find device %s: %w", device, err)
		}
		err = netlink.QdiscAdd(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0),
				Parent: netlink.HANDLE_ROOT},
			Rate:   bytesPerSecond,
			Buffer: uint32(burst * uint64(time.Second) / bytesPerSecond / uint64(tick)),
			Limit:  uint32(burst + queue),
		})
		if err != nil {
			return fmt.Errorf("limit %s to %s (kernel option NET_SCH_TBF): %w", device, rate, err)
		}
		return nil
	})
}

// sysctl sets a kernel parameter of a namespace; path is below /proc/sys/net.
func sysctl(ns *netns.NS, path, value string) error {
	return ns.Do(func() error {
		if err := os.WriteFile("/proc/sys/net/"+path, []byte(value), 0o644); err != nil {
			return fmt.Errorf("set net.%s in %s: %w", path, ns.Name, err)
		}
		return nil
	})
}
