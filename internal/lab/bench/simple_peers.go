package bench

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
)

// setupDirect connects the guests by one veth pair: the least that a path between two namespaces can cost.
func setupDirect(_ context.Context, p *path) error {
	mac, err := net.ParseMAC(p.a.mac)
	if err != nil {
		return err
	}
	if err := p.b.plug(p.a.ns, guestDev); err != nil {
		return err
	}
	return p.a.ns.Do(func() error {
		link, err := netlink.LinkByName(guestDev)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetHardwareAddr(link, mac); err != nil {
			return fmt.Errorf("set MAC %s: %w", p.a.mac, err)
		}
		return p.a.configure()
	})
}

// hosted makes the host's namespace, lets prepare work in it, and plugs the guests in as ports vm-a and vm-b.
func (p *path) hosted(peer string, prepare func() error) (*netns.NS, error) {
	host, err := p.namespace(peer + "-host")
	if err != nil {
		return nil, err
	}
	if prepare != nil {
		if err := host.Do(prepare); err != nil {
			return nil, err
		}
	}
	if err := p.a.plug(host, portA); err != nil {
		return nil, err
	}
	return host, p.b.plug(host, portB)
}

// The host's ends of the guests' cables.
const (
	portA = "vm-a"
	portB = "vm-b"
)

// setupBridge connects the guests by a Linux bridge with default settings: no VLAN filtering, no spanning tree.
func setupBridge(_ context.Context, p *path) error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0", MTU: guestMTU}}
	host, err := p.hosted(peerBridge, func() error {
		if err := netlink.LinkAdd(bridge); err != nil {
			return lacking("bridge devices", err)
		}
		return netlink.LinkSetUp(bridge)
	})
	if err != nil {
		return err
	}
	return host.Do(func() error {
		for _, name := range []string{portA, portB} {
			link, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetMaster(link, bridge); err != nil {
				return fmt.Errorf("connect %s to the bridge: %w", name, err)
			}
		}
		return nil
	})
}

// setupMacvlan gives each guest a macvlan device in bridge mode over one parent. The parent is a veth end that carries
// nothing itself.
func setupMacvlan(_ context.Context, p *path) error {
	host, err := p.namespace(peerMacvlan + "-host")
	if err != nil {
		return err
	}
	parent := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "parent", MTU: guestMTU}, PeerName: "parent-end"}
	err = host.Do(func() error {
		if err := netlink.LinkAdd(parent); err != nil {
			return fmt.Errorf("add the parent device: %w", err)
		}
		end, err := netlink.LinkByName(parent.PeerName)
		if err != nil {
			return err
		}
		return errors.Join(netlink.LinkSetUp(parent), netlink.LinkSetUp(end))
	})
	if err != nil {
		return err
	}
	for _, g := range []*guest{p.a, p.b} {
		if err := g.plugMacvlan(host, parent.Index); err != nil {
			return err
		}
	}
	return nil
}

func (g *guest) plugMacvlan(host *netns.NS, parent int) error {
	mac, err := net.ParseMAC(g.mac)
	if err != nil {
		return err
	}
	inside, err := g.ns.Handle()
	if err != nil {
		return err
	}
	defer inside.Close()
	err = host.Do(func() error {
		attrs := netlink.LinkAttrs{
			Name: guestDev, ParentIndex: parent, HardwareAddr: mac, MTU: guestMTU, Namespace: netlink.NsFd(inside),
		}
		if err := netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}); err != nil {
			return lacking("macvlan devices", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.ns.Do(g.configure)
}

// lacking distinguishes a kernel that does not know a kind of device from other failures.
func lacking(what string, err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("%w: the kernel has no %s", errUnavailable, what)
	}
	return fmt.Errorf("add %s: %w", what, err)
}
