package rpc

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/store"
)

// lagging is a store that tells its server of changes only when somebody wants to be sure to have all of them.
type lagging struct {
	Store
	wanted chan struct{} // closed then
	once   *sync.Once
	away   error // what Sync fails with
}

func (l *lagging) Sync(ctx context.Context) error {
	l.once.Do(func() { close(l.wanted) })
	if l.away != nil {
		return l.away
	}
	return l.Store.Sync(ctx)
}

func (l *lagging) Confirm(ctx context.Context) error {
	if l.away != nil {
		return l.away
	}
	return l.Store.Confirm(ctx)
}

func (l *lagging) Watch(ctx context.Context, from int64) <-chan store.Batch {
	to := make(chan store.Batch)
	go func() {
		defer close(to)
		first := true
		for b := range l.Store.Watch(ctx, from) {
			if !first {
				select {
				case <-l.wanted:
				case <-ctx.Done():
					return
				}
			}
			first = false
			select {
			case to <- b:
			case <-ctx.Done():
				return
			}
		}
	}()
	return to
}

// behind is another controller with the same state, which lags behind what is written from now on.
func (c *controller) behind(away error) people {
	c.t.Helper()
	o := c.Options
	o.Store = &lagging{Store: c.Store, wanted: make(chan struct{}), once: &sync.Once{}, away: away}
	s := must(New(o))(c.t)
	s.This = peers.Controller{ID: "late"}
	ctx, cancel := context.WithCancel(context.Background())
	var g sync.WaitGroup
	g.Go(func() { s.Run(ctx) })
	c.t.Cleanup(func() {
		cancel()
		g.Wait()
	})
	<-s.Loaded
	return people{s}
}

// A controller answers nobody before it has read its store: it would say that there are no hosts.
func TestTheFirstAnswerHasTheWholeState(t *testing.T) {
	c := newController(t)
	c.joins("h1")
	o := c.Options
	o.Store = c.Store
	s := must(New(o))(t)
	select {
	case <-s.Loaded:
		t.Error("it says that the state is read before it has run")
	default:
	}
	ctx, cancel := context.WithCancel(t.Context())
	var g sync.WaitGroup
	g.Go(func() { s.Run(ctx) })
	t.Cleanup(g.Wait)
	t.Cleanup(cancel)
	<-s.Loaded
	list := must(people{s}.ListHosts(t.Context(), &controllerv1.ListHostsRequest{}))(t)
	if len(list.GetHosts()) != 1 || list.GetHosts()[0].GetName() != "h1" {
		t.Errorf("the first answer: %+v", list)
	}
}

// Who reads at one controller what was changed at another gets the change, and so does who releases a port that was
// bound there.
func TestS83_AReadHasWhatAnotherControllerAnsweredBefore(t *testing.T) {
	c := newController(t)
	late := c.behind(nil)
	c.define(staticText)
	if d := must(late.GetDefinition(t.Context(), nil))(t); !strings.Contains(d.GetContent(), "fixed") ||
		d.GetStale() != "" {
		t.Errorf("a definition that was changed at another controller: %+v", d)
	}

	late = c.behind(nil)
	port := must(c.Store.Claim(t.Context(), store.ClaimRequest{PortGroup: "dvs/fixed",
		Binding: store.Binding{Host: "h1", VM: "6f9619ff-8b86-d011-b42d-00c04fc96401", Adapter: "net0"}}))(t)
	list := must(portsIn(late.fleet).ListStaticPorts(t.Context(), &controllerv1.ListStaticPortsRequest{}))(t)
	if len(list.GetPorts()) != 2 || !list.GetPorts()[0].GetBound() || list.GetStale() != "" {
		t.Errorf("a port that was bound at another controller: %+v", list)
	}

	late = c.behind(nil)
	other := must(c.Store.Claim(t.Context(), store.ClaimRequest{PortGroup: "dvs/fixed",
		Binding: store.Binding{Host: "h1", VM: "6f9619ff-8b86-d011-b42d-00c04fc96402", Adapter: "net0"}}))(t)
	for _, id := range []string{port.ID, other.ID} {
		_, err := portsIn(late.fleet).ReleaseStaticPort(t.Context(), &controllerv1.ReleaseStaticPortRequest{Port: id})
		if err != nil {
			t.Errorf("the release of a port that was bound at another controller: %v", err)
		}
	}
}

// staticText defines a port group with two static ports.
const staticText = `
switches:
- name: dvs
  uplinks: [{name: uplink1}]
  portGroups: [{name: fixed, binding: static, ports: {number: 2}}]
templates:
- name: all
  labels: {rack: a}
  switches: [{name: dvs, uplinks: [{name: uplink1, device: eno2}]}]
`

// A controller that can't make sure that it has all changes says so: it may be cut off and not know it yet.
func TestS83_AReadThatMayBeOldSaysSo(t *testing.T) {
	c := newController(t)
	late := c.behind(&store.Unavailable{Cause: errors.New("no answer")})
	if d := must(late.GetDefinition(t.Context(), nil))(t); !strings.Contains(d.GetStale(), "may be old") {
		t.Errorf("the definition: %+v", d)
	}
	list := must(portsIn(late.fleet).ListStaticPorts(t.Context(), &controllerv1.ListStaticPortsRequest{}))(t)
	if !strings.Contains(list.GetStale(), "may be old") {
		t.Errorf("the static ports: %+v", list)
	}
	full := c.behind(store.ErrNoSpace)
	if d := must(full.GetDefinition(t.Context(), nil))(t); d.GetStale() != "" {
		t.Errorf("the definition where nobody can write: %+v", d)
	}
}

// A controller that lost the majority a moment ago, and has not noticed it yet, does not say that all is well: what it
// shows of the cluster says that nobody has confirmed it.
func TestS185_WhatNoMajorityHasConfirmedSaysSo(t *testing.T) {
	c := newController(t)
	lost := c.behind(&store.Unavailable{Cause: errors.New("no answer")})
	if err := lost.Store.Stale(); err != nil {
		t.Fatalf("the store knows it: %v", err)
	}
	ctx := t.Context()
	for name, stale := range map[string]string{
		"ListHosts":      must(lost.ListHosts(ctx, &controllerv1.ListHostsRequest{}))(t).GetStale(),
		"ListFleetPorts": must(lost.ListFleetPorts(ctx, &controllerv1.ListFleetPortsRequest{}))(t).GetStale(),
		"LocatePorts": must(moveCallsAt(lost.Server).LocatePorts(ctx,
			&controllerv1.LocatePortsRequest{Port: "vm1/eth0"}))(t).GetStale(),
		"ListMoves": must(moveCallsAt(lost.Server).ListMoves(ctx, &controllerv1.ListMovesRequest{}))(t).GetStale(),
	} {
		if !strings.Contains(stale, "a majority of the controllers has not answered") {
			t.Errorf("%s: %q", name, stale)
		}
	}
	st := Front(lost).Status(ctx)
	if st.Healthy || st.Store.Stale == "" {
		t.Errorf("the status: %+v", st)
	}
	if there := must(people{c.Server}.ListHosts(ctx, &controllerv1.ListHostsRequest{}))(t); there.GetStale() != "" {
		t.Errorf("where the majority answers: %q", there.GetStale())
	}
}
