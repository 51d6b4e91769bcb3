package reach

import (
	"net/netip"
	"slices"
	"time"

	"heddle/internal/hostnet"
)

// Round asks everybody once, by ARP, neighbour discovery, or by waiting for their next segment: what was heard before it began counts for
// nothing. It does not wait: Look says what has become of it so far.
type Round struct {
	Asks  []Ask
	net   Net
	asked map[Ask]bool
	heard map[Ask]uint64
	read  map[string]time.Time
	hops  map[string][]netip.Addr
}

// rereadEvery is how often the routes of an interface are read again while a gateway's is missing.
const rereadEvery = time.Second

// NewRound begins to ask with the first Look.
func NewRound(net Net, asks []Ask) *Round {
	r := &Round{net: net, asked: map[Ask]bool{}, heard: map[Ask]uint64{}, read: map[string]time.Time{}, hops: map[string][]netip.Addr{}}
	for _, a := range asks {
		r.Asks = append(r.Asks, a.key())
	}
	return r
}

// Look takes in who has answered, and asks those who have not been asked, or whose question the kernel has given up.
func (r *Round) Look() error {
	return firstError(r.lookAtNeighbours(), r.lookAtSessions())
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Round) lookAtNeighbours() error {
	for _, device := range r.devices() {
		index, ok := r.net.Index(device)
		if !ok {
			continue // nobody is reached by it
		}
		table, err := r.net.Neighbours(index)
		if err != nil {
			return err
		}
		for i := range r.Asks {
			a := &r.Asks[i]
			if a.Device != device || a.Kind == Session || a.Answered {
				continue
			}
			if err := r.lookAt(a, index, table); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Round) lookAt(a *Ask, index uint32, table []hostnet.Neighbour) error {
	k := slices.IndexFunc(table, func(n hostnet.Neighbour) bool { return n.Address == a.Address })
	switch {
	case r.asked[a.key()] && k >= 0 && table[k].Reachable:
		routed, err := r.routed(*a, index)
		a.Answered = routed
		return err
	case r.asked[a.key()] && k >= 0 && table[k].Asking:
		return nil
	}
	r.asked[a.key()] = true
	return r.net.Ask(index, a.Address)
}

// routed says whether a gateway is one still: it may answer though the route by it went with the interface.
func (r *Round) routed(a Ask, index uint32) (bool, error) {
	if a.Kind != Gateway {
		return true, nil
	}
	if time.Since(r.read[a.Device]) >= rereadEvery {
		c, err := r.net.Survey(a.Device, index)
		if err != nil {
			return false, err
		}
		r.read[a.Device], r.hops[a.Device] = time.Now(), c.NextHops()
	}
	return slices.Contains(r.hops[a.Device], a.Address), nil
}

func (r *Round) devices() (list []string) {
	for _, a := range r.Asks {
		if a.Kind != Session && !slices.Contains(list, a.Device) {
			list = append(list, a.Device)
		}
	}
	return list
}

func (r *Round) lookAtSessions() error {
	if !slices.ContainsFunc(r.Asks, func(a Ask) bool { return a.Kind == Session && !a.Answered }) {
		return nil
	}
	all, err := r.net.Sessions()
	if err != nil {
		return err
	}
	for i := range r.Asks {
		a := &r.Asks[i]
		k := slices.IndexFunc(all, func(s hostnet.Session) bool { return s.Local == a.Local && s.Remote == a.Remote })
		if a.Kind != Session || k < 0 {
			continue
		}
		was, known := r.heard[a.key()]
		if known && all[k].Heard > was {
			a.Answered = true
		}
		if !known {
			r.heard[a.key()] = all[k].Heard
		}
	}
	return nil
}
