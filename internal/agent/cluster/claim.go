package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// ErrNoController is returned for a claim that no controller answers.
var ErrNoController = errors.New("no controller answers")

// Ports is the agent as the conversation about static ports needs it. Its methods are called from any goroutine.
type Ports interface {
	// Bound takes in which static ports are bound on this host.
	Bound(context.Context, *controllerv1.StaticPorts) error
	// Conflicts takes in which adapters on this host others use too.
	Conflicts(context.Context, *controllerv1.PortConflicts) error
	// Unsettled are claims for the ports that should be static ones and are not, or not certainly.
	Unsettled(context.Context) ([]*controllerv1.PortClaim, error)
	// Settled takes in the answer to one of them.
	Settled(context.Context, *controllerv1.PortClaim, *controllerv1.PortAnswer) error
}

// claims are those of one conversation that wait for their answers.
type claims struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan *controllerv1.PortAnswer
}

// ended are adapters whose ports were claimed, and of which the controller has yet to be told that their connecting has
// ended.
type ended struct {
	mu   sync.Mutex
	list []*controllerv1.ClaimedAdapter
}

// mostEnded is how many are remembered while no controller answers.
const mostEnded = 4096

// Ended says that the connecting of an adapter has ended whose port was claimed, well or not: the controller holds the
// port for this host until it knows what came of it. It does not block.
func (c *Client) Ended(vm, name string) {
	c.connecting.end(adapter{vm, name})
	c.ended.mu.Lock()
	if len(c.ended.list) < mostEnded {
		c.ended.list = append(c.ended.list, &controllerv1.ClaimedAdapter{Vm: vm, Adapter: name})
	}
	c.ended.mu.Unlock()
	c.Changed()
}

// take gives those, which are told then.
func (e *ended) take() []*controllerv1.ClaimedAdapter {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.list
	e.list = nil
	return list
}

// connecting are the adapters whose ports were claimed by who connects them now, and until when that counts. A
// controller to which the host changes meanwhile is told: it has not heard those claims.
type connecting struct {
	mu    sync.Mutex
	until map[adapter]time.Time
}

type adapter struct{ vm, name string }

// connectTime is how long an adapter is being connected at most, as far as controllers are told.
const connectTime = 30 * time.Second

// begin takes in that an adapter is being connected from now on.
func (c *connecting) begin(a adapter, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, until := range c.until {
		if now.After(until) {
			delete(c.until, other)
		}
	}
	if c.until == nil {
		c.until = map[adapter]time.Time{}
	}
	c.until[a] = now.Add(connectTime)
}

func (c *connecting) end(a adapter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.until, a)
}

// list are those that are being connected.
func (c *connecting) list(now time.Time) (list []*controllerv1.ClaimedAdapter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for a, until := range c.until {
		if now.Before(until) {
			list = append(list, &controllerv1.ClaimedAdapter{Vm: a.vm, Adapter: a.name})
		}
	}
	return list
}

// settleEvery is how often a port is claimed again that could not be bound.
const settleEvery = 30 * time.Second

// mostAtOnce is how many claims are made at a time for ports that are connected already.
const mostAtOnce = 32

// Claim asks the controller for a static port. The error is ErrNoController where none answers in time.
func (c *Client) Claim(ctx context.Context, q *controllerv1.PortClaim) (a *controllerv1.PortAnswer, err error) {
	of := adapter{q.GetVm(), q.GetAdapter()}
	err = c.whileItBoots(ctx, func() error {
		if !q.GetRelease() {
			c.connecting.begin(of, time.Now())
		}
		s := c.session.Load()
		if s == nil {
			return ErrNoController
		}
		a, err = s.claim(ctx, q)
		if a.GetRefused() != "" && a.GetPort() == nil { // it is not connected then
			c.connecting.end(of)
		}
		return err
	})
	return a, err
}

// BootTime is how long who asks waits for the first controller, from when the host began to look for one: a host that
// boots asks before a guest starts where a controller answers within that time (S103).
const BootTime = 5 * time.Second

// askAgainAfter is how long who has asked while the host boots, and got no answer, waits before the next question.
const askAgainAfter = 100 * time.Millisecond

// whileItBoots asks controllers, again and again while the host boots and none answers: the first that is heard may be
// starting itself, and say that it can't answer yet, or end the conversation. Once the time for that is over, a
// question is asked once.
func (c *Client) whileItBoots(ctx context.Context, ask func() error) error {
	began := c.began.Load()
	if began == nil {
		return ask()
	}
	ends := began.Add(BootTime)
	c.awaitFirst(ctx, ends)
	for {
		err := ask()
		if !errors.Is(err, ErrNoController) || !time.Now().Before(ends) ||
			!sleep(ctx, min(askAgainAfter, time.Until(ends))) {
			return err
		}
	}
}

// awaitFirst waits until a controller has answered for the first time, or a time has come.
func (c *Client) awaitFirst(ctx context.Context, ends time.Time) {
	left := time.NewTimer(time.Until(ends))
	defer left.Stop()
	select {
	case <-c.first:
	case <-left.C:
	case <-ctx.Done():
	}
}

// Describe asks the controller what a port has where its guest runs. The error is ErrNoController where none answers.
func (c *Client) Describe(ctx context.Context, q *controllerv1.DescribeArrivalRequest) (
	out *controllerv1.DescribeArrivalResponse, err error) {
	err = c.whileItBoots(ctx, func() error {
		rpc := c.present.Load()
		if rpc == nil {
			return ErrNoController
		}
		out, err = (*rpc).DescribeArrival(ctx, q)
		return err
	})
	return out, err
}

func (s *session) claim(ctx context.Context, q *controllerv1.PortClaim) (*controllerv1.PortAnswer, error) {
	answer := make(chan *controllerv1.PortAnswer, 1)
	s.claims.mu.Lock()
	s.claims.last++
	q.Number = s.claims.last
	s.claims.waiting[q.GetNumber()] = answer
	s.claims.mu.Unlock()
	defer func() {
		s.claims.mu.Lock()
		defer s.claims.mu.Unlock()
		delete(s.claims.waiting, q.GetNumber())
	}()
	if s.send(&controllerv1.FollowSliceRequest{Claims: []*controllerv1.PortClaim{q}}) != nil {
		return nil, ErrNoController
	}
	select {
	case a := <-answer:
		if a.GetUnavailable() {
			return nil, ErrNoController
		}
		return a, nil
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	return nil, ErrNoController
}

// answered hands answers to who waits for them.
func (s *session) answered(list []*controllerv1.PortAnswer) {
	s.claims.mu.Lock()
	defer s.claims.mu.Unlock()
	for _, a := range list {
		if to, ok := s.claims.waiting[a.GetNumber()]; ok {
			to <- a // it holds one, and there is one answer
			delete(s.claims.waiting, a.GetNumber())
		}
	}
}

// takePorts takes in what a message says of static ports, after the slice that came with it or before.
func (s *session) takePorts(m *controllerv1.FollowSliceResponse) error {
	s.answered(m.GetAnswers())
	if s.Ports == nil {
		return nil
	}
	if p := m.GetPorts(); p != nil {
		if err := s.Ports.Bound(s.ctx, p); err != nil {
			return err
		}
		s.Settle()
	}
	if p := m.GetConflicts(); p != nil {
		if err := s.Ports.Conflicts(s.ctx, p); err != nil {
			return err
		}
		s.Settle() // what another guest had may be free
	}
	return nil
}

// Settle says that ports may have to be claimed that are connected already. It does not block.
func (c *Client) Settle() {
	select {
	case c.unsettled <- struct{}{}:
	default:
	}
}

// settle claims the ports that are connected and should be static ones, whenever there may be some.
func (s *session) settle() error {
	var again <-chan time.Time // while some are not settled: what another one has may be free meanwhile
	for s.Ports != nil {
		select {
		case <-s.unsettled:
		case <-again:
		case <-s.ctx.Done():
			return nil
		}
		list, err := s.Ports.Unsettled(s.ctx)
		if err != nil {
			return err
		}
		g := errgroup.Group{}
		g.SetLimit(mostAtOnce)
		for _, q := range list {
			g.Go(func() error {
				ctx, cancel := context.WithTimeout(s.ctx, dialTime)
				defer cancel()
				a, err := s.claim(ctx, q)
				if err != nil { // asked again with the next conversation
					return nil
				}
				defer s.Ended(q.GetVm(), q.GetAdapter())
				return s.Ports.Settled(s.ctx, q, a)
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if again = nil; len(list) > 0 {
			again = time.After(settleEvery)
		}
	}
	return nil
}
