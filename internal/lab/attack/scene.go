package attack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"heddle/internal/lab"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/scenario"
	"heddle/internal/lab/traffic"
	"heddle/internal/plan"
	"heddle/internal/uplinks/wire"
)

const (
	readyTime = 2 * time.Minute
	lookEvery = 20 * time.Millisecond
)

// The guests that fill the table of MACs: with a limit above their quota, the same with a policy that lets frames pass
// unlearned, and with a low limit. The guests that bridge their two adapters: with default settings, with storm control
// instead of loop detection, and with neither. The guests that pose as the victims, with guards and without.
const (
	starver            = "starvation"
	passer             = "starvation-passing"
	limited            = "starvation-limit"
	looped             = "looped"
	stormy             = "stormy"
	loose              = "loose"
	guarded, unguarded = "guarded", "unguarded" // pose as the victims
	nest               = "nest"                 // has stations behind it, and attacks nobody
)

// attackers are the guests that attack, with the address of the adapter by which they send. Their ports are named after
// them.
func attackers() map[string]plan.MAC {
	return map[string]plan.MAC{
		"access": {2, 0, 0, 0, 3, 1}, "none": {2, 0, 0, 0, 3, 2}, "trunk": {2, 0, 0, 0, 3, 3},
		starver: {2, 0, 0, 0, 4, 1}, passer: {2, 0, 0, 0, 4, 2}, limited: {2, 0, 0, 0, 4, 3},
		looped: {2, 0, 0, 0, 5, 1}, stormy: {2, 0, 0, 0, 5, 3}, loose: {2, 0, 0, 0, 5, 5},
		guarded: {2, 0, 0, 0, 6, 1}, unguarded: {2, 0, 0, 0, 6, 2},
	}
}

// scene is a running lab.
type scene struct {
	lab     *lab.Lab
	nodes   map[string]*netns.NS
	senders map[string]*sender
	seen    map[string]uint64 // the last event that was read, by host
	row     int               // that is being measured
}

// sender sends frames from a guest.
type sender struct {
	*wire.Sender
	index uint32
}

func (s *sender) send(frame []byte) error { return s.Send(s.index, frame) }

func build(ctx context.Context, o Options) (*scene, error) {
	sc, err := scenario.Parse("hostile-guest.yaml", []byte(labFile), nil)
	if err != nil {
		return nil, err
	}
	l, err := lab.Build(ctx, sc, lab.Options{Name: fmt.Sprintf("hg%d", os.Getpid()), RunDir: o.RunDir,
		Program: o.Program, Progress: o.say})
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
	senders := append(slices.Collect(maps.Keys(attackers())), nest)
	for _, name := range append([]string{client, server}, senders...) {
		ns, err := s.lab.NS(name)
		if err != nil {
			return err
		}
		s.nodes[name] = ns
		if slices.Contains(senders, name) {
			if err := ns.Do(func() error { return s.open(name) }); err != nil {
				return err
			}
		}
	}
	if err := s.await(ctx, "the hosts bundle no LAG, or the victims do not reach each other", s.ready); err != nil {
		return err
	}
	_, err := s.news(ctx)
	return err
}

// await polls until so returns true; if it never does, otherwise describes the state.
func (s *scene) await(ctx context.Context, otherwise string, so func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		ok, err := so(ctx)
		if ok {
			return nil
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return errors.Join(errors.New(otherwise), err)
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

// ready reports whether every member is used on both hosts and the victims reach each other.
func (s *scene) ready(ctx context.Context) (bool, error) {
	for _, h := range hosts() {
		if l, err := s.lag(ctx, h); err != nil || l.used != members || l.partners != 1 {
			return false, err
		}
	}
	if ok, err := s.settled(); err != nil || !ok {
		return false, err
	}
	load := traffic.Load{Kind: traffic.KindEcho, Duration: 100 * time.Millisecond, Rate: 50}
	res, err := traffic.Send(ctx, traffic.Endpoint{NS: s.nodes[client]}, load,
		netip.AddrPortFrom(netip.MustParseAddr(serverAddress), 0))
	return err == nil && res.Echo.Answered == res.Echo.Requests, err
}
