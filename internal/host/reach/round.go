package reach

import (
	"slices"
	"time"

	"heddle/internal/host/hostnet"
)

// Round asks everybody once, by ARP, by neighbour discovery, or by waiting for their next segment: answers from before
// the round do not count. It does not wait: Look returns the answers so far.
type Round struct {
	Asks    []Ask
	net     Net
	asked   map[Ask]bool
	heard   map[Ask]uint64
	read    map[string]time.Time // when an interface was last surveyed
	surveys map[string]*hostnet.Config
}

// rereadEvery is how often the addresses and routes of an interface are read again while an answer does not count.
const rereadEvery = time.Second

// NewRound makes a round; the first Look begins to ask.
func NewRound(net Net, asks []Ask) *Round {
	r := &Round{net: net, asked: map[Ask]bool{}, heard: map[Ask]uint64{}, read: map[string]time.Time{},
		surveys: map[string]*hostnet.Config{}}
	for _, a := range asks {
		r.Asks = append(r.Asks, a.key())
	}
	return r
}

// Look records who has answered, and asks those who have not been asked, or whose request the kernel has given up.
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
			continue // nobody is reached through it
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
		counts, err := r.counts(*a, index)
		a.Answered = counts
		return err
	case r.asked[a.key()] && k >= 0 && table[k].Asking:
		return nil
	}
	r.asked[a.key()] = true
	return r.net.Ask(index, a.Address)
}

// counts reports whether an answer shows that the host is reached: a gateway may answer although the route through it
// is gone with the interface, and anybody may answer an interface that no longer has an address of their network.
func (r *Round) counts(a Ask, index uint32) (bool, error) {
	if r.surveys[a.Device] == nil || time.Since(r.read[a.Device]) >= rereadEvery {
		c, err := r.net.Survey(a.Device, index)
		if err != nil {
			return false, err
		}
		r.read[a.Device], r.surveys[a.Device] = time.Now(), c
	}
	c := r.surveys[a.Device]
	if a.OnLink && !c.OnLink(a.Address) {
		return false, nil
	}
	return a.Kind != Gateway || slices.Contains(c.NextHops(), a.Address), nil
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
