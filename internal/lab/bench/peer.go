package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/traffic"
)

// The addresses and MACs of the two guests. Each peer has namespaces of its own, so all use the same.
const (
	prefixBits = 24
	guestMTU   = 1500
	guestDev   = "eth0"
)

// guest is one end of a path: a namespace with one adapter.
type guest struct {
	ns   *netns.NS
	addr netip.Addr
	mac  string
	dev  string // its name in the namespace; "" is guestDev
}

func (g *guest) device() string {
	if g.dev == "" {
		return guestDev
	}
	return g.dev
}

// path is two guests connected by a peer.
type path struct {
	a, b  *guest
	far   *guest // a third one, which a router separates from the first; nil = there is none
	clean cleanup
	// alive return why the peer can no longer carry anything.
	alive []func() error
}

// pair is the path for a measurement, with the CPUs of its client and its server.
func (p *path) pair(client, server []int) traffic.Pair { return p.pairTo(p.b, client, server) }

func (p *path) pairTo(to *guest, client, server []int) traffic.Pair {
	return traffic.Pair{
		Client: traffic.Endpoint{NS: p.a.ns, CPUs: client},
		Server: traffic.Endpoint{NS: to.ns, CPUs: server},
		Addr:   to.addr,
	}
}

// Peer is a way to connect two guests.
type Peer struct {
	Name string
	// setup connects two guests that have no adapter yet. It adds what it makes besides their namespaces to the
	// path's clean.
	setup func(ctx context.Context, p *path) error
}

// errUnavailable is wrapped by the error of a setup when this machine doesn't have the peer.
var errUnavailable = errors.New("not available on this machine")

// The names of the peers.
const (
	peerDirect  = "direct"
	peerBridge  = "bridge"
	peerMacvlan = "macvlan"
	peerOVS     = "ovs"
	peerHeddle  = "heddle"
)

// peers are all of them, in the order of the table.
func peers(heddle []string) []Peer {
	return []Peer{
		{peerDirect, setupDirect},
		{peerMacvlan, setupMacvlan},
		{peerHeddle, setupHeddle(heddle)},
		{peerBridge, setupBridge},
		{peerOVS, setupOVS},
	}
}

// PeerNames are the names that "heddle bench switch" can be asked for.
func PeerNames() []string { return names(peers(nil)) }

func names(peers []Peer) []string {
	var list []string
	for _, p := range peers {
		list = append(list, p.Name)
	}
	return list
}

// choose picks the peers by name; no name means all.
func choose(all []Peer, asked []string) ([]Peer, error) {
	if len(asked) == 0 {
		return all, nil
	}
	var chosen []Peer
	for _, p := range all {
		if slices.Contains(asked, p.Name) {
			chosen = append(chosen, p)
		}
	}
	for _, n := range asked {
		if !slices.ContainsFunc(all, func(p Peer) bool { return p.Name == n }) {
			return nil, fmt.Errorf("no peer %q to measure: want some of %v", n, names(all))
		}
	}
	return chosen, nil
}

// open makes the peer's guests, connects them, and waits until they reach each other.
func (peer Peer) open(ctx context.Context) (*path, error) {
	p := &path{}
	err := p.makeGuests(peer.Name)
	if err == nil {
		err = peer.setup(ctx, p)
	}
	if err == nil {
		err = p.await(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("set up %s: %w", peer.Name, errors.Join(err, p.clean.run()))
	}
	return p, nil
}

func (p *path) makeGuests(peer string) error {
	for i, g := range []**guest{&p.a, &p.b} {
		ns, err := p.namespace(fmt.Sprintf("%s-%c", peer, 'a'+i))
		if err != nil {
			return err
		}
		*g = &guest{
			ns: ns, addr: netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}), mac: fmt.Sprintf("02:4b:00:00:00:%02x",
				i+1),
		}
	}
	return nil
}

// namespace makes a namespace that is removed with the path. Its name shows what it is for.
func (p *path) namespace(hint string) (*netns.NS, error) {
	ns, err := netns.New(fmt.Sprintf("hb%d-%s", os.Getpid(), hint))
	if err == nil {
		p.clean.add(ns.Delete)
	}
	return ns, err
}

// cleanup undoes steps, the last one first.
type cleanup struct{ steps []func() error }

func (c *cleanup) add(step func() error) { c.steps = append(c.steps, step) }

// run undoes everything, continues after an error, and returns all errors. A second run does nothing.
func (c *cleanup) run() error {
	var errs []error
	for _, step := range slices.Backward(c.steps) {
		errs = append(errs, step())
	}
	c.steps = nil
	return errors.Join(errs...)
}
