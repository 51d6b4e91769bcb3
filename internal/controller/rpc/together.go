package rpc

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/addresses"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/pipeline"
	"heddle/internal/controller/together"
	"heddle/internal/platform/access"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// preparePatience is how long hosts may take to prepare a change, unless the caller says; mostPrepare is the most.
const (
	preparePatience = 10 * time.Second
	mostPrepare     = time.Minute
)

// agreed is the part of a change that has all hosts make it at one instant, where it is asked for so.
type agreed struct {
	fleet  *fleet
	hub    *together.Hub
	roster *peers.Roster
	log    *slog.Logger
	there  *hostReports
	id     string
	lead   time.Duration
	// hosts are ready, away take the change when they are back.
	hosts, away []string
	// bound is by how much what is known of the hosts' clocks may be wrong.
	bound time.Duration
	// clocks are those of the other controllers, by their starts; mu guards them.
	mu     sync.Mutex
	clocks map[string]*together.Clock
	began  time.Time
	// ready is how long it took until all were.
	ready   time.Duration
	decided time.Time
	wall    time.Time
}

// Foretell implements pipeline.Foreteller: the hosts that are not connected are said.
func (a *agreed) Foretell(_ context.Context, p *pipeline.Plan) error {
	if p.GetTogether() == nil {
		return nil
	}
	_, lead, err := timesOf(p.GetTogether())
	here, away := preparing{a.fleet}.connectedOf(p.Answer.GetHosts(), a.there.said)
	p.Answer.Together = &controllerv1.ChangedTogether{Hosts: int32(len(here)), Away: away,
		Decided: durationpb.New(lead)}
	return err
}

// timesOf are how long hosts may take to prepare a change, and how long after the decision they make it.
func timesOf(q *controllerv1.ChangeTogether) (patience, lead time.Duration, err error) {
	patience, lead = preparePatience, together.LeastLead
	if q.GetPatience() != nil {
		patience = max(0, min(q.GetPatience().AsDuration(), mostPrepare))
	}
	if q.GetLead() != nil {
		lead = q.GetLead().AsDuration()
	}
	if lead < together.LeastLead || lead > together.MostLead {
		return 0, 0, connect.NewError(connect.CodeInvalidArgument, fmt.Sprintf("the instant is %s after the decision: "+
			"use %s to %s", lead, together.LeastLead, together.MostLead))
	}
	return patience, lead, nil
}

// connectedOf parts hosts into those that are connected to some controller, and the others.
func (f preparing) connectedOf(names []string, there *fanout.Answers) (here, away []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		h := f.names[name]
		if h == nil {
			continue
		}
		at := there.Hosts[h.id]
		if h.conn != nil || at.GetConnected() && !at.GetHost().GetStale() {
			here = append(here, name)
		} else {
			away = append(away, name)
		}
	}
	return here, away
}

// Prepare implements pipeline.Preparer: it has all hosts that a change concerns prepare it, and returns when all are
// ready. The error says who can't, or is not there; nothing has changed then.
func (a *agreed) Prepare(ctx context.Context, p *pipeline.Plan) error {
	if p.GetTogether() == nil {
		return nil
	}
	patience, lead, err := timesOf(p.GetTogether())
	if err != nil {
		return err
	}
	a.id, a.lead, a.began, a.clocks = rand.Text(), lead, time.Now(), map[string]*together.Clock{}
	here, away := preparing{a.fleet}.connectedOf(p.Answer.GetHosts(), a.there.said)
	attempt := together.New(here, away, p.GetTogether().GetExceptAway())
	if attempt.Verdict(false) == together.Refuse {
		return a.refused(attempt, patience, "; wait for it, or leave out who is away (--except-away): such "+
			"a host takes the change when it is back")
	}
	ask := &controllerv1.PrepareHostsHereRequest{Id: a.id, Revision: p.Base, Hosts: here,
		Patience: durationpb.New(patience)}
	u := &controllerv1.SliceUpdate{}
	addChange(u, p.Objects())
	ask.Put, ask.Removed = u.GetPut(), u.GetRemoved()
	others := make(chan error, 1)
	var elsewhere []peers.Answer[*controllerv1.PrepareHostsHereResponse]
	go func() {
		elsewhere = peers.AskOthers(ctx, a.roster, patience+peers.AskTime, a.askOne(ask))
		others <- nil
	}()
	list, err := preparing{a.fleet}.here(ctx, a.id, p.After, p.Granted, here, patience)
	<-others
	if err != nil {
		return err
	}
	a.take(attempt, list)
	for _, o := range elsewhere {
		if o.Err != nil {
			a.log.Warn("another controller does not prepare a change", "controller", peers.NameOf(o.Of), "err", o.Err)
		}
		a.take(attempt, o.Got.GetHosts())
	}
	if attempt.Verdict(true) == together.Refuse {
		return a.refused(attempt, patience, "")
	}
	a.hosts, a.away, a.ready = attempt.Ready(), attempt.Away(), time.Since(a.began)
	p.Way = a.how()
	return nil
}

// refused is the error of a change that some host does not make.
func (a *agreed) refused(attempt *together.Attempt, patience time.Duration, way string) error {
	a.hub.Tally.Count(func(c *together.Counts) { c.Refused++ })
	lines := attempt.Lines(patience)
	lines[len(lines)-1] += way
	return connect.NewError(connect.CodeFailedPrecondition, "no host was changed: "+strings.Join(lines, "\n"))
}

// take takes in what hosts have said.
func (a *agreed) take(to *together.Attempt, list []*controllerv1.PreparedHost) {
	for _, h := range list {
		a.bound = max(a.bound, h.GetBound().AsDuration())
		if h.GetReady() || len(h.GetProblems()) > 0 {
			to.Answered(h.GetName(), h.GetProblems())
		}
		if h.GetLost() {
			to.Lost(h.GetName())
		}
	}
}

// clockQuestions is how often another controller is asked what its clock shows.
const clockQuestions = 4

// askOne asks another controller to prepare its hosts, and what its clock shows.
func (a *agreed) askOne(q *controllerv1.PrepareHostsHereRequest) func(context.Context, *peers.Link) (
	*controllerv1.PrepareHostsHereResponse, error) {
	return func(ctx context.Context, k *peers.Link) (*controllerv1.PrepareHostsHereResponse, error) {
		got, err := k.PrepareHostsHere(ctx, q)
		if err != nil {
			return nil, err
		}
		clock, start := &together.Clock{}, ""
		for range clockQuestions {
			s := together.Sample{Sent: a.hub.Ticks()}
			shows, err := k.ReadClock(ctx, &controllerv1.ReadClockRequest{})
			if err != nil {
				return nil, err
			}
			s.Received, s.Came, s.Went = a.hub.Ticks(), shows.GetNow(), shows.GetNow()
			start = shows.GetStart()
			clock.Add(s)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.clocks[start] = clock
		_, bound, _ := clock.Ahead(a.hub.Ticks())
		for _, h := range got.GetHosts() {
			h.Bound = durationpb.New(h.GetBound().AsDuration() + time.Duration(bound))
		}
		return got, nil
	}
}

// how is what the history says of the change.
func (a *agreed) how() string {
	text := fmt.Sprintf("together: %d hosts", len(a.hosts))
	if len(a.away) > 0 {
		text += fmt.Sprintf(", except %d that were away", len(a.away))
	}
	return text
}

// Changes implements pipeline.Contributor: the decision and its instant are written in the transaction of the change.
func (a *agreed) Changes(p *pipeline.Plan) ([]store.Change, error) {
	if p.GetTogether() == nil {
		return nil, nil
	}
	a.decided = time.Now()
	// The decision takes as long to reach all hosts as the change did, or less.
	a.lead = min(max(a.lead, a.ready), together.MostLead)
	now := a.hub.Ticks()
	at := now + int64(a.lead)
	a.wall = time.Now().Add(a.lead)
	d := together.Decision{ID: a.id, At: map[string]int64{a.hub.Start(): at}, Wall: a.wall,
		Hosts: len(a.hosts)}
	for start, clock := range a.clocks {
		if ahead, _, known := clock.Ahead(now); known {
			d.At[start] = at + ahead
		}
	}
	doc, err := json.Marshal(d)
	return []store.Change{{Key: togetherKey(), Doc: doc, IfVersion: store.Any}}, err
}

// Tell implements pipeline.Teller: the decision counts.
func (a *agreed) Tell(_ context.Context, p *pipeline.Plan) {
	if p.GetTogether() == nil {
		return
	}
	p.Answer.Together = &controllerv1.ChangedTogether{Id: a.id, At: timestamppb.New(a.wall), Hosts: int32(len(a.hosts)),
		Announced: durationpb.New(a.bound), Away: a.away, Prepared: durationpb.New(a.ready),
		Decided: durationpb.New(time.Since(a.decided))}
	a.hub.Tally.Count(func(c *together.Counts) { c.Made++ })
	a.log.Info("hosts change together", "id", a.id, "hosts", len(a.hosts), "away", len(a.away), "at", a.wall,
		"announced", a.bound, "prepared", a.ready, "decided", time.Since(a.decided))
}

// awaitTogether waits until the hosts have changed, and says which were late.
func (p people) awaitTogether(ctx context.Context, q *controllerv1.ApplyDefinitionRequest,
	out *controllerv1.ApplyDefinitionResponse) (err error) {
	t := out.GetTogether()
	names := slices.DeleteFunc(slices.Clone(out.GetHosts()), func(name string) bool {
		_, away := slices.BinarySearch(t.GetAway(), name)
		return away
	})
	if q.GetWait().AsDuration() <= 0 {
		return nil
	}
	// This clock may have been set since the decision.
	left := max(0, min(time.Until(t.GetAt().AsTime()), together.MostLead))
	out.Waiting, err = p.await(ctx, out.GetRevision(), names, left+q.GetWait().AsDuration())
	if err != nil {
		return err
	}
	there := p.askHosts(ctx, &controllerv1.GetHostsHereRequest{Names: names})
	missing := map[string]string{}
	for _, w := range out.GetWaiting() {
		missing[w.GetHost()] = strings.Join(w.GetProblems(), "; ")
	}
	off, unsure := preparing{p.fleet}.toldOf(t.GetId(), names, there)
	late, spread := together.Outcome(names, t.GetAway(), together.Told{Off: off, Missing: missing, Unsure: unsure},
		t.GetAnnounced().AsDuration())
	for _, l := range late {
		t.Late = append(t.Late, &controllerv1.HostProblem{Host: l.Host, Problems: []string{l.Why}})
	}
	for _, name := range slices.Sorted(maps.Keys(unsure)) {
		t.Unsure = append(t.Unsure, &controllerv1.HostProblem{Host: name, Problems: []string{unsure[name]}})
	}
	if len(off) > 1 {
		t.Spread = durationpb.New(spread)
	}
	p.fleet.together.Tally.Count(func(c *together.Counts) {
		c.Late += int64(len(late) - len(t.GetAway()))
		if len(off) > 1 {
			c.Spread = spread
		}
	})
	access.Note(ctx, fmt.Sprintf("together: %d hosts within %s, %d late, %d not known", len(names)-len(late)+
		len(t.GetAway())-len(unsure), spread, len(late), len(unsure)))
	return nil
}

// toldOf is what hosts have told of a change that they were to make at an instant: off by how much after it each made
// it, unsure those of which that is not known, with why.
func (f preparing) toldOf(id string, names []string, there *fanout.Answers) (off map[string]int64,
	unsure map[string]string) {
	off, unsure = map[string]int64{}, map[string]string{}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		h := f.names[name]
		if h == nil {
			continue
		}
		at := there.Hosts[h.id]
		made, connected := at.GetTogether(), at.GetConnected() && !at.GetHost().GetStale()
		if h.conn != nil {
			made, connected = f.together.Made(h.id), true
		}
		switch {
		case !connected:
			unsure[name] = "it is not connected: whether it changed at the instant is not known"
		case made.GetTold() && made.GetId() == id:
			off[name] = made.GetOff()
		case made.GetId() == id || !made.GetTells():
			unsure[name] = "it has the change, and has not said when it made it"
		}
	}
	return off, unsure
}

// PrepareHostsHere has hosts that are connected here prepare a change.
func (o others) PrepareHostsHere(ctx context.Context, q *controllerv1.PrepareHostsHereRequest) (
	*controllerv1.PrepareHostsHereResponse, error) {
	if _, err := controllerOf(ctx); err != nil {
		return nil, err
	}
	patience := max(0, min(q.GetPatience().AsDuration(), mostPrepare))
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := until(wait, o.fleet, func() bool { return o.fleet.revision >= q.GetRevision() }); err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, "this controller does not have the definition that the "+
			"change is made on")
	}
	o.fleet.mu.Lock()
	same, set := o.fleet.revision == q.GetRevision(), o.fleet.inventory.Objects().Clone()
	g := addresses.Asked()
	o.fleet.mu.Unlock()
	if !same {
		return nil, connect.NewError(connect.CodeAborted, "the definition has changed meanwhile")
	}
	if err := changeBy(set, g, q); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	after, err := inventory.New(set)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	list, err := preparing{o.fleet}.here(ctx, q.GetId(), after, g, q.GetHosts(), patience)
	return &controllerv1.PrepareHostsHereResponse{Hosts: list}, err
}

// changeBy makes the change of a request: objects of the definition in set, and addresses of hosts in the grant.
func changeBy(set *slice.Set, g *addresses.Grant, q *controllerv1.PrepareHostsHereRequest) error {
	for _, o := range q.GetPut() {
		if o.GetKind() != string(addresses.Kind) {
			set.Put(slice.Object{Key: slice.Key{Kind: slice.Kind(o.GetKind()), Name: o.GetName()}, Doc: o.GetDoc()})
			continue
		}
		if err := g.Put(o.GetName(), o.GetDoc()); err != nil {
			return err
		}
	}
	for _, k := range q.GetRemoved() {
		if k.GetKind() == string(addresses.Kind) {
			g.Remove(k.GetName())
		} else {
			set.Remove(slice.Key{Kind: slice.Kind(k.GetKind()), Name: k.GetName()})
		}
	}
	return nil
}

// ReadClock says what this controller's clock shows.
func (o others) ReadClock(ctx context.Context, _ *controllerv1.ReadClockRequest) (*controllerv1.ReadClockResponse,
	error) {
	if _, err := controllerOf(ctx); err != nil {
		return nil, err
	}
	return &controllerv1.ReadClockResponse{Start: o.fleet.together.Start(), Now: o.fleet.together.Ticks()}, nil
}

// here has hosts that are connected to this controller prepare a change, and waits for them as long as patience. Those
// that are not connected here are left out.
func (f preparing) here(ctx context.Context, id string, after *inventory.Inventory, g *addresses.Grant, names []string,
	patience time.Duration) ([]*controllerv1.PreparedHost, error) {
	r := f.together.Round(id)
	if err := f.ask(r, after, g, names); err != nil {
		return nil, err
	}
	return r.Await(ctx, patience)
}

// ask asks the hosts of these names that are connected here.
func (f preparing) ask(r *together.Round, after *inventory.Inventory, g *addresses.Grant, names []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		h := f.names[name]
		if h == nil || h.conn == nil {
			continue
		}
		if err := r.Ask(h.id, name, h.agent, h.conn.Conn, func() (*slice.Set, error) {
			fits, _, err := contents(f).sliceOf(after, h, g.Of(f.addresses, h.doc.Name))
			return fits.set, err
		}); err != nil {
			return err
		}
	}
	return nil
}
