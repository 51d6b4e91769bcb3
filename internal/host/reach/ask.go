package reach

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"heddle/internal/host/hostnet"
)

// Kind is the kind of those who can be asked.
type Kind string

// The kinds, the most reliable first.
const (
	Gateway   Kind = "gateway"   // a route's next hop answers ARP or neighbour discovery
	Session   Kind = "session"   // segments of an established TCP connection arrive
	Neighbour Kind = "neighbour" // another host of the segment answers ARP or neighbour discovery
)

// Ask is one station, or one TCP session, whose answer shows that the host is reachable through an interface.
type Ask struct {
	Device  string     `json:"device"`
	Kind    Kind       `json:"kind"`
	Address netip.Addr `json:"address"`
	// OnLink: before the change, the station was in the network of an address of the interface.
	OnLink bool `json:"onLink,omitzero"`
	// Local and Remote are the ends of a session.
	Local  netip.AddrPort `json:"local,omitzero"`
	Remote netip.AddrPort `json:"remote,omitzero"`
	// Answered: it has answered in the present round.
	Answered bool `json:"answered,omitzero"`
}

// String returns who is asked, and through which interface: "gateway 192.0.2.1 by vmk0".
func (a Ask) String() string {
	if a.Kind == Session {
		return fmt.Sprintf("TCP connection %s ← %s by %s", a.Local, a.Remote, a.Device)
	}
	return fmt.Sprintf("%s %s by %s", a.Kind, a.Address, a.Device)
}

func (a Ask) key() Ask { a.Answered = false; return a }

// Missing returns those who must still answer before the host counts as reachable: every gateway that was asked; on an
// interface without gateways, any one of those asked.
func Missing(asks []Ask) (missing []Ask) {
	for _, a := range asks {
		anyone := func(b Ask) bool { return b.Device == a.Device && b.Answered }
		if !a.Answered && (a.Kind == Gateway || !slices.ContainsFunc(asks, anyone)) {
			missing = append(missing, a)
		}
	}
	return missing
}

// Net is the part of the host's network that is used here; hostnet.Net implements it.
type Net interface {
	Index(device string) (uint32, bool)
	Survey(name string, index uint32) (*hostnet.Config, error)
	Neighbours(index uint32) ([]hostnet.Neighbour, error)
	Ask(index uint32, ip netip.Addr) error
	Sessions() ([]hostnet.Session, error)
}

// Interface is an interface through which others can be asked.
type Interface struct {
	Device string
	// Outside: frames leave the host there. Then an answer from one of this host's own ports proves nothing; if no
	// frame leaves the host there, any neighbour's answer counts.
	Outside bool
}

// Times of the questions before a change.
const (
	beforeMost = 2 * time.Second        // how long others have to answer
	gather     = 300 * time.Millisecond // how long answers are collected when one is enough
	pollBefore = 10 * time.Millisecond
	// mostNeighbours and mostSessions limit how many are asked through one interface.
	mostNeighbours = 8
	mostSessions   = 64
)

// Before finds whom to ask through the interfaces, asks them, and returns those who answer. On an interface on which a
// gateway answers, only gateways count. local reports whether the MAC is that of one of this host's own ports.
func Before(ctx context.Context, net Net, interfaces []Interface, local func([6]byte) bool) ([]Ask, error) {
	asks, err := candidates(net, interfaces, local)
	if err != nil || len(asks) == 0 {
		return nil, err
	}
	r := NewRound(net, asks)
	began := time.Now()
	poll := time.NewTicker(pollBefore)
	defer poll.Stop()
	for {
		if err := r.Look(); err != nil {
			return nil, err
		}
		took := time.Since(began)
		if took >= beforeMost || settled(r.Asks, took) {
			return chosen(r.Asks), nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// settled reports whether waiting longer is useless: all gateways have answered or, if there are none, anybody has.
func settled(asks []Ask, took time.Duration) bool {
	for _, a := range asks {
		gateways := slices.ContainsFunc(asks, func(b Ask) bool { return b.Device == a.Device && b.Kind == Gateway })
		anyone := slices.ContainsFunc(asks, func(b Ask) bool { return b.Device == a.Device && b.Answered })
		switch {
		case a.Kind == Gateway && !a.Answered, !gateways && (!anyone || took < gather):
			return false
		}
	}
	return true
}

// chosen returns those who answered; on an interface on which gateways answered, only these.
func chosen(asks []Ask) (list []Ask) {
	for _, a := range asks {
		gateway := slices.ContainsFunc(asks, func(b Ask) bool {
			return b.Device == a.Device && b.Kind == Gateway &&
				b.Answered
		})
		if a.Answered && (a.Kind == Gateway || !gateway) {
			list = append(list, a.key())
		}
	}
	return list
}

// candidates returns those who could be asked through the interfaces.
func candidates(net Net, interfaces []Interface, local func([6]byte) bool) (asks []Ask, err error) {
	sessions, err := net.Sessions()
	if err != nil {
		return nil, err
	}
	for _, i := range interfaces {
		index, ok := net.Index(i.Device)
		if !ok {
			continue
		}
		c, err := net.Survey(i.Device, index)
		if err != nil {
			return nil, err
		}
		for _, gw := range c.NextHops() {
			asks = append(asks, Ask{Device: i.Device, Kind: Gateway, Address: gw, OnLink: c.OnLink(gw)})
		}
		n := 0
		for _, s := range sessions {
			if c.Has(s.Local.Addr()) && n < mostSessions {
				asks = append(asks, Ask{Device: i.Device, Kind: Session, Address: s.Remote.Addr(), Local: s.Local,
					Remote: s.Remote})
				n++
			}
		}
		others, err := neighbours(net, i, c, local)
		if err != nil {
			return nil, err
		}
		asks = append(asks, others...)
	}
	return asks, nil
}

// neighbours returns the most recently used neighbours whose MAC is known, without gateways.
func neighbours(net Net, i Interface, c *hostnet.Config, local func([6]byte) bool) (asks []Ask, err error) {
	if !i.Outside {
		return nil, nil
	}
	all, err := net.Neighbours(c.Index)
	if err != nil {
		return nil, err
	}
	hops := c.NextHops()
	slices.SortStableFunc(all, func(a, b hostnet.Neighbour) int { return cmp.Compare(a.Unused, b.Unused) })
	for _, n := range all {
		if n.MAC == [6]byte{} || slices.Contains(hops, n.Address) || local(n.MAC) || len(asks) == mostNeighbours {
			continue
		}
		asks = append(asks, Ask{Device: i.Device, Kind: Neighbour, Address: n.Address, OnLink: c.OnLink(n.Address)})
	}
	return asks, nil
}
