package probes

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/fabric"
)

// agent is a host's end of a stream.
type agent struct {
	to   chan *controllerv1.FollowProbesRequest
	from chan *controllerv1.FollowProbesResponse
	ctx  context.Context
}

func (a *agent) Receive() (*controllerv1.FollowProbesRequest, error) {
	select {
	case m := <-a.to:
		return m, nil
	case <-a.ctx.Done():
		return nil, io.EOF
	}
}

func (a *agent) Send(m *controllerv1.FollowProbesResponse) error {
	a.from <- m
	return nil
}

func uplinks(n byte) *controllerv1.ProbeUplinks {
	return &controllerv1.ProbeUplinks{Uplinks: []*controllerv1.ProbeUplink{{Switch: "prod", Uplink: "uplink1",
		Mac: []byte{2, 0, 0, 0, 0, n}, Mtu: 1500, Vlans: []uint32{10, 20}}}}
}

func connect(t *testing.T, h *Hub, ctx context.Context, name string, n byte) *agent {
	t.Helper()
	a := &agent{to: make(chan *controllerv1.FollowProbesRequest, 8),
		from: make(chan *controllerv1.FollowProbesResponse, 8), ctx: ctx}
	go func() {
		_ = h.Follow(ctx, Host{"id-" + name, name}, &controllerv1.FollowProbesRequest{Uplinks: uplinks(n)}, a)
	}()
	return a
}

// lost says that VLAN 20 does not pass, and VLAN 10 does.
func lost(to string) *controllerv1.FollowProbesRequest {
	path := func(vlan uint32) *controllerv1.ProbePath {
		return &controllerv1.ProbePath{Switch: "prod", Uplink: "uplink1", Host: to, To: "uplink1",
			Vlans: []uint32{vlan}}
	}
	return &controllerv1.FollowProbesRequest{Results: &controllerv1.ProbeResults{Results: []*controllerv1.ProbeResult{
		{Path: path(10), State: controllerv1.ProbeState_PROBE_STATE_PASSES},
		{Path: path(20), State: controllerv1.ProbeState_PROBE_STATE_LOST}}}}
}

// Hosts of two controllers probe each other; both controllers come to the same findings, which the hosts are told. A
// host whose agent ends is no fault of the network.
func TestS109_TwoControllersFindTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		options := Options{Log: slog.New(slog.DiscardHandler), Secret: []byte("secret")}
		one, two := New(options), New(options)
		go one.Run(ctx)
		go two.Run(ctx)
		share := func() {
			known := func(string) bool { return true }
			two.Learn("one", one.Read(two.Asks("one")), known)
			one.Learn("two", two.Read(one.Asks("two")), known)
		}
		away, leave := context.WithCancel(ctx)
		a, b := connect(t, one, ctx, "h1", 1), connect(t, two, away, "h2", 2)
		synctest.Wait()
		share()
		time.Sleep(15 * time.Second)
		last := drain(a)
		if n := len(last.GetTasks().GetTasks()); n != 1 || len(last.GetKeys()) != 3 ||
			last.GetTasks().GetTasks()[0].GetPath().GetHost() != "id-h2" {
			t.Fatalf("%d tasks, %d keys", n, len(last.GetKeys()))
		}
		a.to <- lost("id-h2")
		b.to <- lost("id-h1")
		synctest.Wait()
		share()
		time.Sleep(15 * time.Second)
		const want = "VLAN 20 does not pass between h1/uplink1 and h2/uplink1"
		for i, h := range []*Hub{one, two} {
			v, n := h.Verdict()
			if n != 2 || len(v.Findings) != 1 || v.Findings[0].Text != want || v.Paths != 4 || v.Passing != 2 {
				t.Errorf("controller %d: %d hosts, %+v", i+1, n, v)
			}
		}
		if list := drain(b).GetFindings().GetFindings(); len(list) != 1 || list[0].GetText() != want {
			t.Errorf("the host is told %v", list)
		}
		leave()
		synctest.Wait()
		share()
		time.Sleep(3 * time.Second)
		if v, n := one.Verdict(); n != 1 || len(v.Findings) != 0 {
			t.Errorf("without the agent: %d hosts, %+v", n, v)
		}
		cancel()
		synctest.Wait()
	})
}

// A host says of its own uplinks alone that they hear nothing, and no more than a host can have to say.
func TestS104_AHostSpeaksOfItsOwnUplinks(t *testing.T) {
	own := fabric.End{Host: "id-h1", Switch: "prod", Uplink: "uplink1"}.ID()
	other := fabric.End{Host: "id-h2", Switch: "prod", Uplink: "uplink1"}.ID()
	one := &host{id: "id-h1", name: "h1"}
	one.set(uplinks(1), &controllerv1.ProbeResults{Deaf: []*controllerv1.ProbeDeaf{
		{From: other[:], To: own[:], Vlan: 10}, {From: own[:], To: other[:], Vlan: 10}}})
	if len(one.deaf) != 1 || one.deaf[0].To != own {
		t.Errorf("what counts: %+v", one.deaf)
	}
	h := New(Options{Log: slog.New(slog.DiscardHandler), Secret: []byte("secret")})
	big := &controllerv1.FollowProbesRequest{Uplinks: uplinks(1)}
	big.Uplinks.Uplinks[0].Plug = strings.Repeat("a", mostSaid)
	a := &agent{ctx: t.Context()}
	if err := h.Follow(t.Context(), Host{"id-h1", "h1"}, big, a); err == nil || !strings.Contains(err.Error(),
		"more than a host can have to say") {
		t.Errorf("a large message: %v", err)
	}
	if n := len(h.Read(h.Asks("c2")).GetHosts()); n != 0 {
		t.Errorf("%d hosts are kept", n)
	}
}

// Who knows the hosts of the cluster holds a lock while it has one removed. The hub must not wait for that lock while
// it holds its own: then both wait for ever, and with them every host of the controller.
func TestLearn_AsksWhoIsOfTheClusterWithoutTheLock(t *testing.T) {
	h := New(Options{Log: slog.New(slog.DiscardHandler), Secret: []byte("secret")})
	asked := 0
	h.Learn("two", &controllerv1.ReadProbesHereResponse{Start: "x", Hosts: []*controllerv1.HostProbes{
		{Host: "id-h1", Name: "h1", Uplinks: uplinks(1)}, {Host: "id-h2", Name: "h2", Uplinks: uplinks(2)}}},
		func(id string) bool {
			asked++
			if !h.mu.TryLock() {
				t.Fatal("the hub is locked")
			}
			h.mu.Unlock()
			return id == "id-h1"
		})
	if _, n := h.Verdict(); n != 1 || asked != 2 {
		t.Errorf("%d hosts take part, want 1; asked %d times, want 2", n, asked)
	}
}

// drain is all that a host was sent, as one message.
func drain(a *agent) *controllerv1.FollowProbesResponse {
	all := &controllerv1.FollowProbesResponse{}
	for {
		select {
		case m := <-a.from:
			if len(m.GetKeys()) > 0 {
				all.Keys = m.GetKeys()
			}
			if m.GetTasks() != nil {
				all.Tasks = m.GetTasks()
			}
			if m.GetFindings() != nil {
				all.Findings = m.GetFindings()
			}
		default:
			return all
		}
	}
}
