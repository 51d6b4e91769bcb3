package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/definition"
	"heddle/internal/platform/access/tokens"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/store"
)

// faulty is a store of which one write fails, in one of several ways.
type faulty struct {
	Store
	mu sync.Mutex
	// at is which of the writes that are left fails, counted from 1; how says in what way.
	at, writes int
	how        wayToFail
}

type wayToFail string

// The ways in which a write fails: without that anything was written, at the quota, and when it was written or was not
// and nobody knows.
const (
	before  wayToFail = "before it is written"
	noSpace wayToFail = "for want of space"
	after   wayToFail = "after it is written"
	never   wayToFail = "with nothing written, which is not known"
)

// write makes a write, or has it fail.
func (f *faulty) write(do func() error) error {
	f.mu.Lock()
	f.writes++
	fails := f.writes == f.at
	f.mu.Unlock()
	if !fails {
		return do()
	}
	cut := errors.New("cut off")
	switch f.how {
	case before:
		return &store.Unavailable{Cause: cut}
	case noSpace:
		return fmt.Errorf("%w: make some", store.ErrNoSpace)
	case after:
		if err := do(); err != nil {
			return err
		}
	}
	return &store.Unavailable{MaybeWritten: true, Cause: cut}
}

func (f *faulty) Write(ctx context.Context, changes []store.Change) (revision int64, err error) {
	err = f.write(func() error {
		revision, err = f.Store.Write(ctx, changes)
		return err
	})
	return revision, err
}

func (f *faulty) Claim(ctx context.Context, r store.ClaimRequest) (p store.Port, err error) {
	err = f.write(func() error {
		p, err = f.Store.Claim(ctx, r)
		return err
	})
	return p, err
}

func (f *faulty) Release(ctx context.Context, r store.ReleaseRequest) error {
	return f.write(func() error { return f.Store.Release(ctx, r) })
}

func (f *faulty) Resize(ctx context.Context, group string, ports int, guard *store.Change) error {
	return f.write(func() error { return f.Store.Resize(ctx, group, ports, guard) })
}

func (f *faulty) RemovePorts(ctx context.Context, group string, force bool, guard *store.Change) error {
	return f.write(func() error { return f.Store.RemovePorts(ctx, group, force, guard) })
}

// failing is another controller with the same state, whose write of that number fails.
func (c *controller) failing(at int, how wayToFail) (people, *faulty) {
	c.t.Helper()
	o, f := c.Options, &faulty{Store: c.Store, how: how}
	o.Store = f
	s := must(New(o))(c.t)
	s.This = peers.Controller{ID: "failing"}
	ctx, cancel := context.WithCancel(context.Background())
	var g sync.WaitGroup
	g.Go(func() { s.Run(ctx) })
	c.t.Cleanup(func() {
		cancel()
		g.Wait()
	})
	c.await("the other controller has begun", func() bool {
		s.fleet.mu.Lock()
		defer s.fleet.mu.Unlock()
		return s.fleet.loaded
	})
	f.mu.Lock()
	f.at, f.writes = at, 0
	f.mu.Unlock()
	return people{s}, f
}

// outcome is a call that changes something.
type outcome struct {
	// prepare is done before, by a controller that is well.
	prepare func(c *controller)
	call    func(ctx context.Context, p people) error
	// counts reports whether the change is there.
	counts func(c *controller) bool
	// costs says what a call has cost that is not there; nil for nothing that could.
	costs func(c *controller) string
}

// some reports whether there is an object of a kind.
func some(kind store.Kind) func(c *controller) bool {
	return func(c *controller) bool { return len(c.Store.List(kind)) > 0 }
}

// defines reports whether the definition has that port group.
func defines(group string) func(c *controller) bool {
	return func(c *controller) bool {
		d := definition.Writer{Store: c.Store, Log: c.Log}
		if err := d.Fold(c.t.Context()); err != nil {
			c.t.Fatal(err)
		}
		_, ok := c.Store.Get(store.Key{Kind: store.KindPortGroup, Name: group})
		return ok
	}
}

// changing are calls that people make.
func changing() map[string]outcome {
	apply := func(text string) func(context.Context, people) error {
		return func(ctx context.Context, p people) error {
			_, err := p.ApplyDefinition(ctx, &controllerv1.ApplyDefinitionRequest{Content: text, Force: true})
			return err
		}
	}
	return map[string]outcome{
		"a definition with static ports": {call: apply(staticText), counts: defines("dvs/fixed")},
		"a large definition":             {call: apply(large(0, 300, 10)), counts: defines("dvs/g0000")},
		"a definition that removes": {prepare: withABoundPort,
			call:   apply(large(0, 1, 10)),
			counts: func(c *controller) bool { return !defines("dvs/fixed")(c) }, costs: lessThan("dvs/fixed", 2, 1)},
		"a large definition that removes": {prepare: withABoundPort, call: apply(large(0, 300, 10)),
			counts: func(c *controller) bool { return !defines("dvs/fixed")(c) }, costs: lessThan("dvs/fixed", 2, 1)},
		"a definition without static ports": {prepare: withABoundPort,
			call: apply(strings.Replace(staticText, "binding: static, ports: {number: 2}", "binding: ephemeral", 1)),
			counts: func(c *controller) bool {
				o, _ := c.Store.Get(store.Key{Kind: store.KindPortGroup, Name: "dvs/fixed"})
				return strings.Contains(string(o.Doc), "ephemeral")
			}, costs: lessThan("dvs/fixed", 2, 1)},
		"a token of a host": {call: func(ctx context.Context, p people) error {
			_, err := p.CreateJoinToken(ctx, &controllerv1.CreateJoinTokenRequest{})
			return err
		}, counts: some(store.KindToken)},
		"a token of a person": {call: func(ctx context.Context, p people) error {
			_, err := deskOf(p.Server).CreateAPIToken(ctx, &controllerv1.CreateAPITokenRequest{Name: "ann",
				Role: controllerv1.AccessRole_ACCESS_ROLE_VIEWER})
			return err
		}, counts: some(tokens.Kind)},
		"a token that is withdrawn": {prepare: func(c *controller) {
			must(deskOf(c.Server).CreateAPIToken(c.t.Context(), &controllerv1.CreateAPITokenRequest{Name: "ann",
				Role: controllerv1.AccessRole_ACCESS_ROLE_VIEWER}))(c.t)
		}, call: func(ctx context.Context, p people) error {
			_, err := deskOf(p.Server).RevokeAPIToken(ctx, &controllerv1.RevokeAPITokenRequest{
				Id: p.Store.List(tokens.Kind)[0].Name})
			return err
		}, counts: func(c *controller) bool { return !some(tokens.Kind)(c) }},
		"a host that is removed": {prepare: func(c *controller) {
			if err := c.joinAt(c.Server, "esx1"); err != nil {
				c.t.Fatal(err)
			}
		}, call: func(ctx context.Context, p people) error {
			_, err := p.RemoveHost(ctx, &controllerv1.RemoveHostRequest{Name: "esx1"})
			return err
		}, counts: func(c *controller) bool { return !some(store.KindHost)(c) }},
		"a static port that is released": {prepare: func(c *controller) {
			c.define(staticText)
			must(c.Store.Claim(c.t.Context(), aClaim()))(c.t)
		}, call: func(ctx context.Context, p people) error {
			_, err := portsIn(p.fleet).ReleaseStaticPort(ctx, &controllerv1.ReleaseStaticPortRequest{
				Port: boundPorts(p.Store)[0].ID})
			return err
		}, counts: func(c *controller) bool { return len(boundPorts(c.Store)) == 0 }},
	}
}

// withABoundPort defines a port group with two static ports, and binds one.
func withABoundPort(c *controller) {
	c.define(staticText)
	must(c.Store.Claim(c.t.Context(), aClaim()))(c.t)
}

// lessThan says that a port group has fewer ports than it had, or fewer that are bound.
func lessThan(group string, ports, bound int) func(c *controller) string {
	return func(c *controller) string {
		if has, is := countPorts(c, group); has < ports || is < bound {
			return fmt.Sprintf("port group %s has %d static ports, %d of them bound; it had %d, %d", group, has, is,
				ports, bound)
		}
		return ""
	}
}

// countPorts is how many static ports a port group has, and how many are bound.
func countPorts(c *controller, group string) (ports, bound int) {
	for _, o := range c.Store.List(store.KindPorts) {
		b := must(store.DecodeBindings(&o))(c.t)
		if b.Group == group {
			ports, bound = ports+b.Ports, bound+len(b.Bound)
		}
	}
	return ports, bound
}

func aClaim() store.ClaimRequest {
	return store.ClaimRequest{PortGroup: "dvs/fixed", Binding: store.Binding{Host: "h1",
		VM: "6f9619ff-8b86-d011-b42d-00c04fc96401", Adapter: "net0"}}
}

// boundPorts are the static ports that are bound.
func boundPorts(s Store) (list []store.Port) {
	for _, o := range s.List(store.KindPorts) {
		ports, err := store.DecodePorts(&o)
		if err != nil {
			return nil
		}
		for _, p := range ports {
			if p.Binding != nil {
				list = append(list, p)
			}
		}
	}
	return list
}

// mostWrites is how many writes of a call are made to fail: the others are the same.
const mostWrites = 12

// writesOf is how many writes a call makes, where none fails.
func writesOf(t *testing.T, o outcome) int {
	c := newController(t)
	if o.prepare != nil {
		o.prepare(c)
	}
	p, f := c.failing(0, before)
	if err := o.call(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writes == 0 {
		t.Fatal("the call writes nothing")
	}
	return min(f.writes, mostWrites)
}

// Whichever write of a change fails, and in whatever way: a change that is answered as done counts, one that is
// answered as failed is not there, and of the others the answer says that it is not known.
func TestS129_AnAnswerSaysWhetherTheChangeCounts(t *testing.T) {
	for name, o := range changing() {
		for _, how := range []wayToFail{before, noSpace, after, never} {
			t.Run(name+" fails "+string(how), func(t *testing.T) {
				made := writesOf(t, o)
				for at := 1; at <= made; at++ {
					c := newController(t)
					if o.prepare != nil {
						o.prepare(c)
					}
					p, _ := c.failing(at, how)
					err := o.call(t.Context(), p)
					if e := c.Store.Sync(t.Context()); e != nil {
						t.Fatal(e)
					}
					counts := o.counts(c)
					unknown := err != nil && strings.Contains(err.Error(), "is not known")
					switch {
					case err == nil && !counts:
						t.Errorf("write %d: answered as done, and it is not there", at)
					case err != nil && !unknown && counts:
						t.Errorf("write %d: answered as failed, and it counts: %v", at, err)
					}
					if o.costs != nil && !counts {
						if lost := o.costs(c); lost != "" {
							t.Errorf("write %d: the change is not there, and %s (%v)", at, lost, err)
						}
					}
				}
			})
		}
	}
}
