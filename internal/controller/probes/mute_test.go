package probes

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/fabric"
)

// tunnelTo says that nothing comes back through the tunnel to a host.
func tunnelTo(name string, peer byte) *controllerv1.FollowProbesRequest {
	return &controllerv1.FollowProbesRequest{Results: &controllerv1.ProbeResults{Tunnels: []*controllerv1.ProbeTunnel{
		{Switch: "prod", Own: []byte{10, 0, 0, 1}, Peer: []byte{10, 0, 0, peer}, PeerHost: name, Mtu: 1500, Port: 4789,
			State: controllerv1.ProbeState_PROBE_STATE_LOST}}}}
}

// A host whose agent does not say that it knows probes of tunnels, one of another version that takes no part at all,
// and such a one at another controller are not called unreachable; one that says so, and one that is away, are.
func TestS109_AgentsOfAnEarlierVersionAreNotCalledUnreachable(t *testing.T) {
	for _, c := range []struct {
		name, peer, want string
	}{
		{"an agent that says no ability", "old", "does not know probes of tunnels"},
		{"an agent that takes no part", "older", "does not know probes of tunnels"},
		{"an agent at another controller", "there", "does not know probes of tunnels"},
		{"an agent that knows", "new", "no packets of the tunnel"},
		{"an agent that is away", "away", "; away (10.0.0.9) is not connected to the controllers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				began := time.Now()
				h := New(Options{Log: slog.New(slog.DiscardHandler), Secret: []byte("secret"),
					Connected: func() map[string]Connected {
						return map[string]Connected{"id-older": {"older", began}, "id-old": {"old", began}}
					}, Others: func() []string { return []string{"other"} }})
				h.Absent = func() map[string]bool { return map[string]bool{"away": true, "new": true, "there": true} }
				go h.Run(ctx)
				able := &controllerv1.ProbeUplinks{Uplinks: uplinks(1).GetUplinks(), Abilities: fabric.Abilities()}
				prober := connectWith(ctx, h, "prober", able)
				connectWith(ctx, h, "new", able)
				connectWith(ctx, h, "old", uplinks(3))
				h.Learn("other", &controllerv1.ReadProbesHereResponse{Start: "x", Mute: []string{"there"}},
					func(string) bool { return true })
				prober.to <- tunnelTo(c.peer, 9)
				time.Sleep(settle + 2*restEvery)
				synctest.Wait()
				v, _ := h.Verdict()
				var texts []string
				for _, f := range v.Findings {
					if strings.Contains(f.Text, "tunnel") {
						texts = append(texts, f.Text)
					}
				}
				if len(texts) != 1 || !strings.Contains(texts[0], c.want) {
					t.Errorf("%q", texts)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// connectWith connects a host, which says this of its uplinks.
func connectWith(ctx context.Context, h *Hub, name string, said *controllerv1.ProbeUplinks) *agent {
	a := &agent{to: make(chan *controllerv1.FollowProbesRequest, 8),
		from: make(chan *controllerv1.FollowProbesResponse, 64), ctx: ctx}
	go func() {
		_ = h.Follow(ctx, Host{"id-" + name, name}, &controllerv1.FollowProbesRequest{Uplinks: said}, a)
	}()
	return a
}
