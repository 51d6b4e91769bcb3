package rpc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/store"
)

// pair is two controllers of one cluster, with a host at each; the hosts' clocks are hours apart.
type pair struct {
	one, other *controller
	a, b       *machine
}

func newPair(t *testing.T) *pair {
	t.Helper()
	st := openStore(t)
	p := &pair{}
	p.one = controllerOn(t, "c1", newAuthority(t), st)
	p.other = controllerOn(t, "c2", p.one.authority, st)
	p.one.define(clusterText)
	rack := map[string]string{"rack": "a"}
	p.a, p.b = p.one.at(p.one, "host-a", rack), p.one.at(p.other, "host-b", rack)
	return p
}

// another is clusterText with another VLAN.
func another(vlan string) string {
	return strings.Replace(clusterText, "access: 10", "access: "+vlan, 1)
}

// together makes a change that hosts make together, by the first controller.
func (p *pair) together(text string, q *controllerv1.ChangeTogether) (*controllerv1.ApplyDefinitionResponse, error) {
	return p.togetherBy(p.one.Server, text, q)
}

func (p *pair) togetherBy(s *Server, text string, q *controllerv1.ChangeTogether) (
	*controllerv1.ApplyDefinitionResponse, error) {
	return people{s}.ApplyDefinition(p.one.t.Context(), &controllerv1.ApplyDefinitionRequest{Content: text,
		Together: q, Wait: durationpb.New(patience)})
}

// took is what a machine has, as text, and when it took it by the test's clock.
func (m *machine) took() (content string, at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.given == nil {
		return "", 0
	}
	for _, o := range m.given.Objects {
		content += string(o.Doc)
	}
	return content, time.Duration(m.activeAt) - m.ahead
}

// on reports whether a machine has that VLAN.
func (m *machine) on(vlan string) bool {
	content, _ := m.took()
	return strings.Contains(content, `"access":`+vlan)
}

// Hosts of two controllers change together, each at the instant by its own clock, which is hours from the other's.
func TestS101_HostsOfSeveralControllersChangeTogether(t *testing.T) {
	p := newPair(t)
	p.a.ahead, p.b.ahead = 0, 7*time.Hour // since before anybody asked
	p.one.breaks("host-a")
	p.other.breaks("host-b")
	began := time.Since(clockBegan)
	out, err := p.together(another("31"), &controllerv1.ChangeTogether{})
	if err != nil {
		t.Fatal(err)
	}
	lead := time.Duration(0)
	for _, m := range []*machine{p.a, p.b} {
		if _, at := m.took(); !m.on("31") || at < began+time.Second || at > time.Since(clockBegan) {
			t.Errorf("a host changed %s after the call began", at-began)
		} else {
			lead = at - began
		}
	}
	got := out.GetTogether()
	if got.GetHosts() != 2 || len(out.GetWaiting()) > 0 || got.GetAnnounced().AsDuration() <= 0 {
		t.Errorf("it says %v", out)
	}
	t.Logf("%s after the call; within %s, announced %s", lead, got.GetSpread().AsDuration(),
		got.GetAnnounced().AsDuration())
	list := must(p.other.reader().ListChanges(t.Context(), &controllerv1.ListChangesRequest{}))(t)
	if how := list.GetChanges()[0].GetHow(); !strings.Contains(how, "together: 2 hosts") {
		t.Errorf("the history says %q", how)
	}
}

// A host of another controller that can't make the change keeps all from it; so does one that was never connected to
// anything, unless it is left out.
func TestS101_OneHostThatCantKeepsAllFromTheChange(t *testing.T) {
	p := newPair(t)
	p.b.mu.Lock()
	p.b.unready = []string{"its device is another switch's"}
	p.b.mu.Unlock()
	_, err := p.together(another("32"), &controllerv1.ChangeTogether{})
	if err == nil || !strings.Contains(err.Error(), "host host-b can't make the change: its device is another") {
		t.Errorf("it is %v", err)
	}
	p.b.mu.Lock()
	p.b.unready = nil
	p.b.mu.Unlock()
	p.one.joins("host-c") // and never connects
	if _, err := p.together(another("32"), &controllerv1.ChangeTogether{}); err == nil ||
		!strings.Contains(err.Error(), "host host-c is not connected") {
		t.Errorf("with a host that is away it is %v", err)
	}
	if p.a.on("32") || p.b.on("32") {
		t.Error("a host changed")
	}
	out, err := p.together(another("32"), &controllerv1.ChangeTogether{ExceptAway: true})
	if err != nil || !p.a.on("32") || !p.b.on("32") || len(out.GetTogether().GetAway()) != 1 {
		t.Errorf("without the one that is away: %v, %v", out, err)
	}
	if _, err := p.together(another("33"), &controllerv1.ChangeTogether{Lead: durationpb.New(time.Hour)}); err == nil {
		t.Error("an hour is taken as a lead")
	}
}

// cutOffStore is a store that does not answer writes of decisions: lost are written all the same.
type cutOffStore struct {
	Store
	lost bool
}

// Write is not answered.
func (s cutOffStore) Write(ctx context.Context, list []store.Change) (int64, error) {
	for _, c := range list {
		if c.Key != togetherKey() {
			continue
		}
		if s.lost {
			if _, err := s.Store.Write(ctx, list); err != nil {
				return 0, err
			}
		}
		return 0, &store.Unavailable{Cause: errors.New("a test cuts it off")}
	}
	return s.Store.Write(ctx, list)
}

// A controller that is cut off from the majority while it decides: where nothing was written nobody changes, and where
// it was all do, by the other controllers, though the one that decided never heard so.
func TestS101_AControllerIsCutOffWhileItDecides(t *testing.T) {
	p := newPair(t)
	away := *p.one.Server
	away.Store = cutOffStore{p.one.Store, false}
	if _, err := p.togetherBy(&away, another("34"), &controllerv1.ChangeTogether{}); err == nil {
		t.Error("it says that it is decided")
	}
	away.Store = cutOffStore{p.one.Store, true}
	if _, err := p.togetherBy(&away, another("35"), &controllerv1.ChangeTogether{}); err == nil {
		t.Error("it says that it knows")
	}
	if p.a.on("34") || p.b.on("34") {
		t.Error("a host changed that nobody decided about")
	}
	for _, m := range []*machine{p.a, p.b} {
		p.other.await("what is written counts", func() bool { return m.on("35") })
	}
	if out, err := p.together(another("36"), &controllerv1.ChangeTogether{}); err != nil || len(out.GetWaiting()) > 0 {
		t.Errorf("afterwards: %v, %v", out, err)
	}
}

// A host whose connection breaks after it was ready, before the decision comes, keeps what it has, and takes the change
// when it is back, never before the instant.
func TestS101_AHostThatLosesItsConnectionTakesTheChangeLater(t *testing.T) {
	p := newPair(t)
	p.a.mu.Lock()
	p.a.asked = func() { // the other one is ready by then, or becomes so by a connection that has ended
		p.a.mu.Lock()
		p.a.asked = nil
		p.a.mu.Unlock()
		p.other.await("the other one is ready", func() bool { return p.other.ready("host-b") })
		p.other.breaks("host-b")
	}
	p.a.mu.Unlock()
	began := time.Since(clockBegan)
	out, err := p.together(another("37"), &controllerv1.ChangeTogether{})
	if err != nil {
		t.Fatalf("it is refused: %v", err)
	}
	for _, m := range []*machine{p.a, p.b} {
		if _, at := m.took(); !m.on("37") || at < began+time.Second {
			t.Errorf("a host changed %s after the call began", at-began)
		}
	}
	t.Log(out.GetTogether().GetLate())
}

// ready reports whether a host has said so.
func (c *controller) ready(name string) bool {
	return c.fleet.together.Said(c.idOf(name))
}
