package attack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/scenario"
	"heddle/internal/lab/traffic"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/uplinks/wire"
)

const (
	readyTime = 2 * time.Minute
	lookEvery = 20 * time.Millisecond
)

// attackers are the guests that attack, by the kind of their ports, and their addresses.
func attackers() map[string]plan.MAC {
	return map[string]plan.MAC{"access": {2, 0, 0, 0, 3, 1}, "none": {2, 0, 0, 0, 3, 2}, "trunk": {2, 0, 0, 0, 3, 3}}
}

// scene is the lab that is up.
type scene struct {
	lab     *lab.Lab
	nodes   map[string]*netns.NS
	senders map[string]*sender
	seen    map[string]uint64 // the last event looked at, by host
}

// sender sends frames from a guest.
type sender struct {
	*wire.Sender
	index uint32
}

func build(ctx context.Context, o Options) (*scene, error) {
	sc, err := scenario.Parse("hostile-guest.yaml", []byte(labFile), nil)
	if err != nil {
		return nil, err
	}
	l, err := lab.Build(ctx, sc, lab.Options{Name: fmt.Sprintf("hg%d", os.Getpid()), RunDir: o.RunDir, Program: o.Program, Progress: o.say})
	if err != nil {
		return nil, err
	}
	s := &scene{lab: l, nodes: map[string]*netns.NS{}, senders: map[string]*sender{}, seen: map[string]uint64{}}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *scene) close() error {
	var errs []error
	for _, x := range s.senders {
		errs = append(errs, x.Close())
	}
	return errors.Join(append(errs, s.lab.Down())...)
}

// prepare opens the attackers' sockets and waits until the LAG is formed and the victims reach each other.
func (s *scene) prepare(ctx context.Context) error {
	for _, name := range append([]string{client, server}, "access", "none", "trunk") {
		ns, err := s.lab.NS(name)
		if err != nil {
			return err
		}
		s.nodes[name] = ns
		if _, ok := attackers()[name]; ok {
			if err := ns.Do(func() error { return s.open(name) }); err != nil {
				return err
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		ready, err := s.ready(ctx)
		if ready {
			return s.skipEvents(ctx)
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return errors.Join(errors.New("the hosts bundle no LAG, or the victims do not reach each other"), err)
		}
	}
}

func (s *scene) open(name string) error {
	dev, err := net.InterfaceByName("eth0")
	if err != nil {
		return err
	}
	w, err := wire.OpenSender()
	if err != nil {
		return err
	}
	s.senders[name] = &sender{w, uint32(dev.Index)}
	return nil
}

// ready says whether every member is used on both hosts and the victims reach each other.
func (s *scene) ready(ctx context.Context) (bool, error) {
	for _, h := range hosts() {
		if l, err := s.lag(ctx, h); err != nil || l.used != members || l.partners != 1 {
			return false, err
		}
	}
	load := traffic.Load{Kind: traffic.KindEcho, Duration: 100 * time.Millisecond, Rate: 50}
	res, err := traffic.Send(ctx, traffic.Endpoint{NS: s.nodes[client]}, load, netip.AddrPortFrom(netip.MustParseAddr(serverAddress), 0))
	return err == nil && res.Echo.Answered == res.Echo.Requests, err
}

// lag is what a host's LAG is like.
type lag struct {
	used, partners, neighbours int
}

func (s *scene) lag(ctx context.Context, host string) (l lag, err error) {
	st, err := s.lab.Agent(host).State(ctx)
	if err != nil {
		return l, err
	}
	partners := map[string]bool{}
	for _, u := range st.Uplinks {
		if u.LAG != nil && u.LAG.Used && u.State == api.Up {
			l.used++
		}
		if u.LAG != nil && u.LAG.Partner != nil {
			partners[u.LAG.Partner.System] = true
		}
		if u.LLDP != nil {
			l.neighbours += len(u.LLDP.Neighbours)
		}
	}
	l.partners = len(partners)
	return l, nil
}

func (s *scene) skipEvents(ctx context.Context) error {
	_, err := s.changes(ctx)
	return err
}

// changes counts the events of links and neighbours since it was last asked, on all hosts.
func (s *scene) changes(ctx context.Context) (n int, err error) {
	for _, h := range hosts() {
		err := s.lab.Agent(h).Events(ctx, api.Follow{After: s.seen[h], Last: -1, NoFollow: true}, func(b api.Events) error {
			for _, e := range b.Events {
				s.seen[h] = max(s.seen[h], e.Seq)
				if slices.Contains([]event.Kind{event.Link, event.Failover, event.Neighbour}, e.Kind) {
					n++
				}
			}
			return nil
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// refused are the drops of the attackers' frames, by reason.
func (s *scene) refused(ctx context.Context) (map[string]uint64, error) {
	all, err := s.lab.Agent(attacked).Stats(ctx)
	if err != nil {
		return nil, err
	}
	n := map[string]uint64{}
	for _, p := range all {
		if _, ok := attackers()[p.Name]; ok {
			for _, d := range p.Drops {
				n[d.Reason] += d.Value
			}
		}
	}
	return n, nil
}
