package rpc

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/audit"
	"heddle/internal/platform/store"
)

// counters are a machine's: its ports send a thousand frames a second, which are dropped while it has that VLAN.
type counters struct {
	agentv1connect.StatsServiceHandler // nil: nobody asks anything else
	m                                  *machine
	bad                                string
	sent, dropped                      float64
	at                                 time.Time
}

// ListVitals says what it has counted.
func (c *counters) ListVitals(context.Context, *agentv1.ListVitalsRequest) (*agentv1.ListVitalsResponse, error) {
	bad := c.m.on(c.bad)
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	now := time.Now()
	frames := 1000 * now.Sub(c.at).Seconds()
	c.at = now
	c.sent += frames
	if bad {
		c.dropped += frames
	}
	return &agentv1.ListVitalsResponse{Vitals: []*agentv1.Vitals{{Switch: "dvs", Sent: uint64(c.sent), Ports: 2,
		Handed: uint64(c.sent), ReadAt: int64(now.Sub(clockBegan)),
		Drops: []*agentv1.ReasonCount{{Reason: "vlan-not-allowed", Value: uint64(c.dropped)}}}}}, nil
}

// badVLAN is one with which no frame passes.
const badVLAN = "666"

// counts has a machine say what it has counted.
func (m *machine) counts() *machine {
	rpc := connect.NewServer()
	agentv1connect.RegisterStatsServiceHandler(rpc, &counters{m: m, bad: badVLAN, at: time.Now()})
	mux := http.NewServeMux()
	connecthttp.Mount(mux, rpc)
	m.calls = mux
	return m
}

// staging is two controllers of one cluster with four hosts, two at each, and a fifth one that has never come.
type stagedPair struct {
	t          *testing.T
	st         *store.Store
	one, other *controller
	hosts      map[string]*machine
}

func newStagedPair(t *testing.T) *stagedPair {
	t.Helper()
	st := openStore(t)
	p := &stagedPair{t: t, st: st, hosts: map[string]*machine{}}
	p.one = controllerOn(t, "c1", newAuthority(t), st)
	p.other = controllerOn(t, "c2", p.one.authority, st)
	p.one.define(clusterText)
	for i, at := range []*controller{p.one, p.other, p.one, p.other} {
		name := fmt.Sprintf("host-%d", i)
		m := &machine{c: p.one, dir: t.TempDir(), report: &controllerv1.HostReport{}, at: at.address}
		m.counts().join(name, p.one.token(), false)
		p.hosts[name] = m.start()
		at.await(name+" is up", func() bool { return at.state(name) == controllerv1.HostState_HOST_STATE_UP })
	}
	return p
}

// stages makes a change in stages, by the second controller.
func (p *stagedPair) stages(text, stages string, edit func(*controllerv1.ApplyDefinitionRequest)) (
	*controllerv1.ApplyDefinitionResponse, error) {
	q := &controllerv1.ApplyDefinitionRequest{Content: text, Message: "in stages", Stages: &controllerv1.ChangeInStages{
		Stages: stages, Wait: durationpb.New(time.Second)}}
	if edit != nil {
		edit(q)
	}
	return people{p.other.Server}.ApplyDefinition(p.t.Context(), q)
}

// on are the hosts that have a VLAN.
func (p *stagedPair) on(vlan string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(p.hosts)) {
		if p.hosts[name].on(vlan) {
			names = append(names, name)
		}
	}
	return names
}

// rollout is one as it is shown.
func (p *stagedPair) rollout(id string) *controllerv1.Rollout {
	p.t.Helper()
	return must(rolloutsOf(p.one.Server).GetRollout(p.t.Context(), &controllerv1.GetRolloutRequest{Id: id}))(
		p.t).GetRollout()
}

// comes waits for a state of a rollout.
func (p *stagedPair) comes(id, state string) *controllerv1.Rollout {
	p.t.Helper()
	p.one.await("rollout "+id+" is "+state, func() bool { return p.rollout(id).GetState() == state })
	return p.rollout(id)
}

// history is how the newest change was made, and what it restores.
func (p *stagedPair) history() *controllerv1.DefinitionChange {
	p.t.Helper()
	return must(p.one.reader().ListChanges(p.t.Context(), nil))(p.t).GetChanges()[0]
}

// A change goes from stage to stage, on hosts of both controllers, each host has what a revision describes all the
// time, other changes of the switch are refused meanwhile and those of another switch are not.
func TestS102_AChangeGoesFromStageToStage(t *testing.T) {
	p := newStagedPair(t)
	base := p.history().GetRevision()
	dry, err := p.stages(another("30"), "1,50%,100%", func(q *controllerv1.ApplyDefinitionRequest) { q.DryRun = true })
	if err != nil || len(dry.GetRollout().GetStages()) != 3 || len(dry.GetRollout().GetStages()[2].GetHosts()) != 2 {
		t.Fatalf("the dry run: %v, %v", dry, err)
	}
	out, err := p.stages(another("30"), "1,50%,100%", func(q *controllerv1.ApplyDefinitionRequest) {
		q.Stages.Wait = durationpb.New(4 * time.Second) // for what is looked at in a stage
	})
	if err != nil {
		t.Fatal(err)
	}
	id := out.GetRollout().GetId()
	p.one.await("the first stage has begun", func() bool { return len(p.on("30")) > 0 })
	if got := p.on("30"); len(got) != 1 {
		t.Errorf("%v have the first stage", got)
	}
	if _, err := p.stages(another("31"), "100%", nil); err == nil || !strings.Contains(err.Error(), "rollout "+id) {
		t.Errorf("another change of the switch: %v", err)
	}
	must(people{p.one.Server}.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{
		Content: strings.Replace(another("30"), "{name: secret}", "{name: secret}, {name: more}", 1)}))(t)
	p.one.await("the second stage has begun", func() bool { return len(p.on("30")) > 1 })
	if got := p.on("30"); len(got) != 2 {
		t.Errorf("%v have the second stage", got)
	}
	if got := len(p.on("10")); got != 2 {
		t.Errorf("%d hosts have the definition of before", got)
	}
	now := p.comes(id, "done")
	p.one.await("all hosts have it", func() bool { return len(p.on("30")) == 4 })
	if now.GetBase() != base || now.GetRevision() != out.GetRevision() || len(now.GetFound()) > 0 {
		t.Errorf("it was made on %d: %v", base, now)
	}
	if changes := must(p.one.reader().ListChanges(t.Context(), nil))(t).GetChanges(); changes[1].GetHow() !=
		"in stages: 1,50%,100%" {
		t.Errorf("the history: %v", changes)
	}
}

// A change with which hosts drop frames halts at the first stage by itself, and says what it saw; it is taken back by a
// person, and a rollback of that is a change as any other.
func TestS102_ABadChangeHaltsByItself(t *testing.T) {
	p := newStagedPair(t)
	out, err := p.stages(another(badVLAN), "1,100%", nil)
	if err != nil {
		t.Fatal(err)
	}
	id := out.GetRollout().GetId()
	halted := p.comes(id, "halted")
	bad := p.on(badVLAN)
	if len(bad) != 1 || halted.GetBegun() != 1 || len(halted.GetFound()) != 1 ||
		halted.GetFound()[0].GetHost() != bad[0] ||
		!strings.Contains(halted.GetFound()[0].GetWhat(), "dropped for vlan-not-allowed") {
		t.Errorf("%v have it: %v", bad, halted)
	}
	logged := func() int { return p.other.log.count("rollout", "halted") + p.one.log.count("rollout", "halted") }
	p.one.await("the log says so", func() bool { return logged() > 0 })
	if n := logged(); n != 1 {
		t.Errorf("the log says so %d times", n)
	}
	r := rolloutsOf(p.one.Server)
	aborted := must(r.AbortRollout(t.Context(), &controllerv1.AbortRolloutRequest{Id: id}))(t).GetRollout()
	p.one.await("the host has the old version", func() bool { return len(p.on("10")) == 4 })
	if c := p.history(); aborted.GetState() != "aborted" || c.GetRestores() != out.GetRollout().GetBase() &&
		c.GetRestores() != aborted.GetBase() || c.GetHow() != "takes rollout "+id+" back" {
		t.Errorf("%v, history: %v", aborted, c)
	}
	if _, err := r.ResumeRollout(t.Context(), &controllerv1.ResumeRolloutRequest{Id: id}); err == nil {
		t.Error("a rollout that was taken back goes on")
	}
	// A rollback of the rollback, in stages as well: it takes back by itself.
	back, err := p.stages("", "1,100%", func(q *controllerv1.ApplyDefinitionRequest) {
		q.Restore, q.Stages.Halt = out.GetRevision(), "rollback"
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := p.comes(back.GetRollout().GetId(), "taken-back"); len(r.GetFound()) != 1 {
		t.Errorf("it was taken back for %v", r.GetFound())
	}
	p.one.await("all have the old version", func() bool { return len(p.on("10")) == 4 })
	said := func() (n int) {
		for _, c := range []*controller{p.one, p.other} {
			found := must(c.Audit.List(audit.Query{}))(t)
			for _, e := range found.Entries {
				if e.Call == "DriveRollout" && slices.Contains(e.Objects, "taken-back") {
					n++
				}
			}
		}
		return n
	}
	p.one.await("the audit log says that it was taken back", func() bool { return said() > 0 })
	if n := said(); n != 1 {
		t.Errorf("%d audit lines say that it was taken back", n)
	}
}

// A host that was away at its stage gets the version of its stage when it is back, also while the rollout is paused.
func TestS102_AHostThatComesBackGetsTheVersionOfItsStage(t *testing.T) {
	p := newStagedPair(t)
	for _, name := range []string{"host-1", "host-2"} {
		p.hosts[name].stop()
	}
	out, err := p.stages(another("40"), "75%,100%", func(q *controllerv1.ApplyDefinitionRequest) {
		q.Stages.Wait = durationpb.New(time.Hour)
		q.Stages.Watch = durationpb.New(time.Second)
	})
	if err != nil {
		t.Fatal(err)
	}
	id := out.GetRollout().GetId()
	first := map[string]bool{}
	for _, h := range out.GetRollout().GetStages()[0].GetHosts() {
		first[h.GetName()] = true
	}
	p.one.await("the first stage has begun", func() bool { return p.rollout(id).GetBegun() == 1 })
	must(rolloutsOf(p.one.Server).PauseRollout(t.Context(), &controllerv1.PauseRolloutRequest{}))(t)
	for _, name := range []string{"host-1", "host-2"} {
		p.hosts[name].start()
	}
	for name, m := range p.hosts {
		want := map[bool]string{true: "40", false: "10"}[first[name]]
		p.one.await(name+" has VLAN "+want, func() bool { return m.on(want) })
	}
	must(rolloutsOf(p.one.Server).ResumeRollout(t.Context(), &controllerv1.ResumeRolloutRequest{All: true}))(t)
	p.one.await("all have it", func() bool { return len(p.on("40")) == 4 })
	if r := p.rollout(id); r.GetState() != "done" {
		t.Errorf("it is %v", r)
	}
}
