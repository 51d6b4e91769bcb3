package segments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/overlay/span"
	"heddle/internal/overlay/wire"
	"heddle/internal/plan"
)

// agent is the host's half of a conversation, as an agent has it.
type agent struct {
	t    *testing.T
	host Host
	own  span.Own
	// older: it is of the version before, which knows no VLANs inside a VNI.
	older bool

	mu      sync.Mutex
	known   span.Replica
	updates int // segments' updates that came
	current bool
	refused []uint32

	to   chan *controllerv1.FollowSegmentsRequest
	stop context.CancelFunc
	done chan error
}

func newAgent(t *testing.T, id string) *agent {
	return &agent{t: t, host: Host{id, "name of " + id}}
}

// stream is the controller's side of one conversation.
type stream struct {
	*agent
	ctx context.Context
	to  chan *controllerv1.FollowSegmentsRequest
}

func (s stream) Receive() (*controllerv1.FollowSegmentsRequest, error) {
	select {
	case m := <-s.to:
		return m, nil
	case <-s.ctx.Done():
		return nil, io.EOF
	}
}

func (a *agent) Send(m *controllerv1.FollowSegmentsResponse) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current = a.current || m.GetCurrent()
	a.refused = append(a.refused, m.GetRefused()...)
	out := &controllerv1.FollowSegmentsRequest{}
	for _, vni := range m.GetTell() {
		out.Known = append(out.Known, wire.Update(a.known.All(span.VNI(vni))))
	}
	for _, one := range m.GetUpdates() {
		u, err := wire.ReadUpdate(a.readable(one))
		if err != nil {
			return err
		}
		a.updates++
		if !a.known.Apply(u) {
			out.Anew = append(out.Anew, uint32(u.VNI))
		}
	}
	if len(out.GetKnown())+len(out.GetAnew()) > 0 {
		a.to <- out
	}
	return nil
}

// connect begins a conversation with a hub.
func (a *agent) connect(h *Hub) {
	a.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	a.to, a.stop, a.done = make(chan *controllerv1.FollowSegmentsRequest, 64), stop, make(chan error, 1)
	a.current, a.updates, a.refused = false, 0, nil
	r := a.own.Whole(a.host.ID, &a.known)
	hello := &controllerv1.SegmentHello{Have: wire.Have(a.known.Have()), Vlans: !a.older}
	first := &controllerv1.FollowSegmentsRequest{Hello: hello, Report: wire.Report(&r)}
	to, done := a.to, a.done
	go func() { done <- h.Follow(ctx, a.host, first, stream{a, ctx, to}) }()
	a.t.Cleanup(stop)
}

// leave ends it.
func (a *agent) leave() {
	a.stop()
	<-a.done
	a.own.End()
}

// have makes the MACs, by their last byte, those of the host in a segment, and says so where it is connected.
func (a *agent) have(segments map[span.VNI][]byte) {
	all := map[span.VNI]map[span.Key]span.Claim{}
	for vni, macs := range segments {
		all[vni] = map[span.Key]span.Claim{}
		for _, n := range macs {
			all[vni][key(n)] = span.Claim{Source: span.Learned}
		}
	}
	a.say(all)
}

// say makes these claims the host's, and says so where it is connected.
func (a *agent) say(all map[span.VNI]map[span.Key]span.Claim) {
	a.own.Set([]span.Endpoint{{Address: netip.AddrFrom4([4]byte{192, 0, 2, a.host.ID[0]}), MTU: 1600}}, all)
	a.mu.Lock()
	r, ok := a.own.Changes(a.host.ID, &a.known)
	a.mu.Unlock()
	if ok {
		a.to <- &controllerv1.FollowSegmentsRequest{Report: wire.Report(&r)}
	}
}

func key(n byte) span.Key { return span.MACKey(plan.MAC{2, 0, 0, 0, 0, n}) }

// at is on which host the agent takes a MAC to be; "" for nowhere.
func (a *agent) at(vni span.VNI, n byte) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.known.Content(vni); c != nil {
		return c.Places[key(n)].Host
	}
	return ""
}

func (a *agent) is(what string, f func() bool) {
	a.t.Helper()
	await(a.t, a.host.ID+": "+what, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return f()
	})
}

func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); !f(); {
		if time.Now().After(until) {
			t.Fatalf("it does not come: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func newHub(t *testing.T) *Hub {
	return New(Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Linger: 20 * time.Millisecond,
		Allowed: func(id string) map[span.VNI]bool {
			if id == "stranger" {
				return nil
			}
			return map[span.VNI]bool{5: true, 6: true, 7: true}
		}})
}

// Locations go to the hosts of a segment's span, and to no others; what changes is told as what changed (S105).
func TestS105_LocationsGoToTheSpan(t *testing.T) {
	h := newHub(t)
	a, b, c := newAgent(t, "a"), newAgent(t, "b"), newAgent(t, "c")
	a.have(map[span.VNI][]byte{5: {1}, 6: nil})
	b.have(map[span.VNI][]byte{5: {2}})
	c.have(map[span.VNI][]byte{7: {3}})
	for _, one := range []*agent{a, b, c} {
		one.connect(h)
		one.is("it is current", func() bool { return one.current })
	}
	await(t, "a and b know each other", func() bool { return a.at(5, 2) == "b" && b.at(5, 1) == "a" })
	b.have(map[span.VNI][]byte{5: {2, 4}})
	await(t, "a hears of a MAC behind b", func() bool { return a.at(5, 4) == "b" })
	a.have(map[span.VNI][]byte{5: {1, 4}, 6: nil})
	await(t, "it moves to a", func() bool { return a.at(5, 4) == "a" && b.at(5, 4) == "a" })
	b.have(map[span.VNI][]byte{6: {2}})
	await(t, "b leaves 5 for 6", func() bool { return a.at(5, 2) == "" && a.at(6, 2) == "b" && b.at(5, 1) == "" })
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := c.known.Segments(); len(got) != 1 || got[0] != 7 || c.updates != 1 {
		t.Errorf("c knows segments %v, by %d updates", got, c.updates)
	}
}

// A host that comes back is sent what is another, found by hashes; what it knows by then it keeps.
func TestS105_AHostThatComesBackIsSentWhatIsAnother(t *testing.T) {
	h := newHub(t)
	a, b := newAgent(t, "a"), newAgent(t, "b")
	a.have(map[span.VNI][]byte{5: {1}, 6: {1}})
	b.have(map[span.VNI][]byte{5: {2}, 6: {2}})
	a.connect(h)
	b.connect(h)
	await(t, "they know each other", func() bool { return a.at(5, 2) == "b" && b.at(6, 1) == "a" && a.at(6, 2) == "b" })
	a.leave()
	a.connect(h)
	a.is("it is current again", func() bool { return a.current })
	a.mu.Lock()
	if a.updates != 0 {
		t.Errorf("nothing changed, and %d updates came", a.updates)
	}
	a.mu.Unlock()
	a.leave()
	b.have(map[span.VNI][]byte{5: {2}, 6: {2, 3}})
	a.connect(h)
	await(t, "it hears what is another", func() bool { return a.at(6, 3) == "b" })
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.updates != 1 {
		t.Errorf("one segment changed, and %d updates came", a.updates)
	}
}

// A controller that was started anew takes nothing from a host that it knew of hosts which are not back yet (S105).
func TestS105_ARestartedControllerTakesNothingAway(t *testing.T) {
	h := newHub(t)
	a, b := newAgent(t, "a"), newAgent(t, "b")
	a.have(map[span.VNI][]byte{5: {1}})
	b.have(map[span.VNI][]byte{5: {2}})
	a.connect(h)
	b.connect(h)
	await(t, "they know each other", func() bool { return a.at(5, 2) == "b" && b.at(5, 1) == "a" })
	a.leave()
	b.leave()
	anew := newHub(t)
	a.connect(anew)
	a.is("it is current", func() bool { return a.current })
	if a.at(5, 2) != "b" {
		t.Error("it has forgotten where the other MAC is")
	}
	if got := anew.Get(5, Query{Limit: 9}); len(got.GetMembers()) != 2 || got.GetMembers()[1].GetConnected() {
		t.Errorf("the members are %v", got.GetMembers())
	}
	b.have(map[span.VNI][]byte{5: {3}})
	b.connect(anew)
	await(t, "b says what it has now", func() bool { return a.at(5, 3) == "b" && a.at(5, 2) == "" })
}

// Two controllers tell each other. A host that goes from one to the other keeps what it has; one whose controller is
// lost keeps it, too.
func TestS105_ControllersTellOneAnother(t *testing.T) {
	hubs := []*Hub{newHub(t), newHub(t)}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	cut, lose := context.WithCancel(ctx)
	join := func(ctx context.Context, from, to *Hub, name string) {
		go func() {
			_ = from.Share(ctx, func(m *controllerv1.FollowSegmentsHereResponse) error { return to.Learn(name, m) })
			to.Lost(context.Background(), name)
		}()
	}
	join(ctx, hubs[0], hubs[1], "first")
	join(cut, hubs[1], hubs[0], "second")
	a, b := newAgent(t, "a"), newAgent(t, "b")
	a.have(map[span.VNI][]byte{5: {1, 9}})
	b.have(map[span.VNI][]byte{5: {2}})
	a.connect(hubs[0])
	b.connect(hubs[1])
	await(t, "they know each other", func() bool { return a.at(5, 2) == "b" && b.at(5, 1) == "a" })
	b.have(map[span.VNI][]byte{5: {2, 9}})
	await(t, "a MAC moves to b", func() bool { return a.at(5, 9) == "b" && b.at(5, 9) == "b" })
	a.leave()
	a.connect(hubs[1])
	await(t, "a is at the second one", func() bool {
		hubs[0].mu.Lock()
		defer hubs[0].mu.Unlock()
		return hubs[0].away["a"] == "second" && hubs[0].table.Session("a") == hubs[1].session("a")
	})
	if a.at(5, 9) != "b" || b.at(5, 1) != "a" {
		t.Error("the move of the host lost a location")
	}
	lose()
	await(t, "the first one takes both for disconnected", func() bool {
		for _, m := range hubs[0].Get(5, Query{Limit: 9}).GetMembers() {
			if m.GetConnected() {
				return false
			}
		}
		return true
	})
	if got := len(hubs[0].Get(5, Query{Limit: 9}).GetLocations()); got != 3 {
		t.Errorf("it knows %d locations", got)
	}
}

func (h *Hub) session(id string) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.table.Session(id)
}

// A host is refused a segment that the definition does not give it, and a report that is not well formed ends its
// conversation.
func TestHub_RefusesWhatIsNotAHosts(t *testing.T) {
	h := newHub(t)
	a := newAgent(t, "a")
	a.have(map[span.VNI][]byte{5: {1}, 99: {1}})
	a.connect(h)
	a.is("99 is refused", func() bool { return len(a.refused) == 1 && a.refused[0] == 99 })
	if h.Get(99, Query{Limit: 9}) != nil || h.Get(5, Query{Limit: 9}) == nil {
		t.Error("it is a member of 99, or not of 5")
	}
	a.to <- &controllerv1.FollowSegmentsRequest{Report: &controllerv1.SegmentReport{
		Segments: []*controllerv1.HostSegment{{}}}}
	if err := <-a.done; err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("it ended by %v", err)
	}
	h.Remove("a")
	if h.Get(5, Query{Limit: 9}) != nil {
		t.Error("a host that was removed is a member")
	}
	if c := h.Counts(); c.Refused != 1 || c.Hosts != 0 || c.MACs != 0 {
		t.Errorf("counted is %+v", c)
	}
}

// An update that got lost is noticed by the next one's hash, and all of the segment is sent.
func TestS105_ALostUpdateIsNoticed(t *testing.T) {
	h := newHub(t)
	a, b := newAgent(t, "a"), newAgent(t, "b")
	a.have(map[span.VNI][]byte{5: {1}})
	b.have(map[span.VNI][]byte{5: {2}})
	a.connect(h)
	b.connect(h)
	await(t, "they know each other", func() bool { return a.at(5, 2) == "b" && b.at(5, 1) == "a" })
	a.mu.Lock()
	a.known.Apply(&span.Update{VNI: 5, Removed: []span.Key{key(2)}}) // as if it had never come
	a.mu.Unlock()
	b.have(map[span.VNI][]byte{5: {2, 3}})
	await(t, "it has both", func() bool { return a.at(5, 2) == "b" && a.at(5, 3) == "b" })
}

// What many hosts need is made once, and is kept until all were sent it.
func TestHub_SharesUpdates(t *testing.T) {
	h := newHub(t)
	var all []*agent
	for i := range 20 {
		one := newAgent(t, fmt.Sprintf("%c", 'a'+i))
		one.have(map[span.VNI][]byte{5: {byte(i)}})
		one.connect(h)
		all = append(all, one)
	}
	all[0].have(map[span.VNI][]byte{5: {0, 200}})
	for _, one := range all {
		await(t, "it hears of it", func() bool { return one.at(5, 200) == "a" && one.at(5, 19) == "t" })
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.shared) > 0 {
		t.Errorf("an update is kept that all were sent: %d hosts are left", h.shared[sharedKey{vni: 5}].left)
	}
}
