package fabric

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"net/netip"
	"slices"
	"time"
)

// How often tunnels are probed while they pass.
const (
	// TunnelRound is that of a pair of endpoints.
	TunnelRound = 5 * time.Second
	// ProxyRound is that of the endpoints on which this host's broadcasts depend: the proxies of other subnets.
	ProxyRound = 2 * time.Second
)

// Bounds of the tunnels that a host probes, for each switch.
const (
	// MostPairs is how many others each endpoint probes, whatever the number of hosts.
	MostPairs = 4
	// MostProxies is how many proxies are probed.
	MostProxies = 64
)

// TunnelEnd names an endpoint in probes: by its address alone, so that both ends agree.
func TunnelEnd(a netip.Addr) End { return End{Uplink: a.String()} }

// OpenKey signs the probes of hosts that have no secret in common, as no controller gives them one. Whoever is on the
// way can forge such probes: they show whether packets pass, and nothing is decided by them but which of several
// endpoints gets a copy.
func OpenKey() Secret {
	return Secret{Key: sha256.Sum256([]byte("heddle probes between hosts without a secret in common"))}
}

// Ring is what a host knows of the tunnel of one switch.
type Ring struct {
	// Own are this host's endpoints, Others those of other hosts that have segments in common with it, Proxies those of
	// the others on which broadcasts depend.
	Own, Others, Proxies []netip.Addr
	// MTU of the guests, in bytes of layer 3.
	MTU int
	// Pairs: endpoints are probed that are no proxies too.
	Pairs bool
}

// Tasks returns the paths that the host has to probe, in order. Which pairs these are follows from the addresses and
// from the epoch: each endpoint has others on a ring that probe it, the next ones and some further off, which are
// others in each epoch.
func (r *Ring) Tasks(epoch uint64) (list []Task) {
	add := func(own, other netip.Addr, every time.Duration) {
		list = append(list, Task{Path: Path{From: TunnelEnd(own), To: TunnelEnd(other)}, MTU: min(r.MTU, Longest),
			Every: every})
	}
	for _, a := range r.Proxies[:min(len(r.Proxies), MostProxies)] {
		if own, ok := first(r.Own, a); ok {
			add(own, a, ProxyRound)
		}
	}
	if r.Pairs {
		for _, own := range r.Own {
			for _, a := range r.around(own, epoch) {
				add(own, a, TunnelRound)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Task) int {
		return cmp.Or(a.Path.Compare(b.Path), cmp.Compare(a.Every, b.Every))
	})
	return slices.CompactFunc(list, func(a, b Task) bool { return a.Path == b.Path })
}

// first returns the first address of the same family.
func first(own []netip.Addr, a netip.Addr) (netip.Addr, bool) {
	for _, o := range own {
		if o.Is4() == a.Is4() {
			return o, true
		}
	}
	return netip.Addr{}, false
}

// around returns the others that an endpoint probes.
func (r *Ring) around(own netip.Addr, epoch uint64) (list []netip.Addr) {
	var others []netip.Addr
	for _, a := range r.Others {
		if a.Is4() == own.Is4() && !slices.Contains(r.Own, a) {
			others = append(others, a)
		}
	}
	if len(others) <= MostPairs {
		return others
	}
	slices.SortFunc(others, func(a, b netip.Addr) int { return compareIDs(TunnelEnd(a).ID(), TunnelEnd(b).ID()) })
	at, _ := slices.BinarySearchFunc(others, TunnelEnd(own).ID(), func(a netip.Addr, id EndID) int {
		return compareIDs(TunnelEnd(a).ID(), id)
	})
	const next = MostPairs / 2
	for i := range MostPairs {
		off := i
		if i >= next {
			l := Layout{epoch: epoch}
			off = next + int(l.mix(uint16(i))%uint64(len(others)-next))
		}
		if a := others[(at+off)%len(others)]; !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

func compareIDs(a, b EndID) int { return bytes.Compare(a[:], b[:]) }

// Tunnel is what a host found between an endpoint of its own and one of another host.
type Tunnel struct {
	Switch string
	// Host is the id of the host that probes, Name its name, Own its endpoint.
	Host, Name string
	Own        netip.Addr
	// Peer is the other endpoint, PeerName the name of its host.
	Peer     netip.Addr
	PeerName string
	// MTU of the guests; Port is the tunnel's UDP port.
	MTU, Port int
	// Result without its path.
	Result
	// Mute: the agent of the peer's host is of an earlier version, and answers no probes of tunnels.
	Mute bool
	// Away: the peer's host is not connected to the controllers.
	Away bool
	// Deaf: the peer's probes arrive, and it does not hear the echoes. State is Unknown where only that is known.
	Deaf bool
}
