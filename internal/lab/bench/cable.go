package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/traffic"
)

// plug makes the guest's adapter, a veth whose other end stays in the namespace host under the given name, up.
func (g *guest) plug(host *netns.NS, name string) error {
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
		cable := &netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: name, MTU: guestMTU},
			PeerName:  g.device(), PeerHardwareAddr: mac, PeerNamespace: netlink.NsFd(inside),
		}
		if err := netlink.LinkAdd(cable); err != nil {
			return fmt.Errorf("add veth %s: %w", name, err)
		}
		return netlink.LinkSetUp(cable)
	})
	if err != nil {
		return err
	}
	return g.ns.Do(g.configure)
}

// configure gives the adapter its address and turns it on. It runs inside the guest.
func (g *guest) configure() error {
	link, err := netlink.LinkByName(g.device())
	if err != nil {
		return fmt.Errorf("find adapter %s: %w", g.device(), err)
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: g.addr.AsSlice(), Mask: net.CIDRMask(prefixBits, g.addr.BitLen())}}
	if err := netlink.AddrAdd(link, addr); err != nil {
		return fmt.Errorf("give %s to %s: %w", g.addr, g.device(), err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("turn on %s: %w", g.device(), err)
	}
	return nil
}

const (
	joinPatience = time.Minute // ends a hopeless wait; a busy machine may take long to verify and load the programs
	joinEvery    = 100 * time.Millisecond
)

// await waits until the other guests answer the first.
func (p *path) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	for _, to := range []*guest{p.b, p.far} {
		if to == nil {
			continue
		}
		if err := p.answers(ctx, to.addr); err != nil {
			return err
		}
	}
	return nil
}

// answers waits until the address answers the first guest.
func (p *path) answers(ctx context.Context, addr netip.Addr) error {
	load := traffic.Load{Kind: traffic.KindEcho, Duration: joinEvery, Rate: 2 / joinEvery.Seconds()}
	for {
		for _, alive := range p.alive {
			if err := alive(); err != nil {
				return err
			}
		}
		res, err := traffic.Send(ctx, traffic.Endpoint{NS: p.a.ns}, load, netip.AddrPortFrom(addr, 0))
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("the guests do not reach each other within %v", joinPatience)
		}
		if err != nil || res.Echo.Replies > 0 {
			return err
		}
	}
}
