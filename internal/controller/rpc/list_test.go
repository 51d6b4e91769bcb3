package rpc

import (
	"strings"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/health"
)

// TestS177_BothHostsWithOneEndpointSaySo: the list of hosts has it at both, and the controller is not healthy.
func TestS177_BothHostsWithOneEndpointSaySo(t *testing.T) {
	up, down := controllerv1.HostState_HOST_STATE_UP, controllerv1.HostState_HOST_STATE_DISCONNECTED
	kept := &controllerv1.Host{Name: "h2", State: up}
	hosts := []*controllerv1.Host{{Name: "h1", State: up}, kept, {Name: "h3", State: down, Problems: []string{"older"}}}
	shared := []health.SharedEndpoint{{Address: "192.0.2.1", A: "h2", B: "h3"}}
	nameShared(hosts, shared)
	if h := hosts[0]; h.GetState() != up || len(h.GetProblems()) != 0 {
		t.Errorf("a host that shares nothing: %v", h)
	}
	for i, other := range map[int]string{1: "h3", 2: "h2"} {
		p := hosts[i].GetProblems()
		if len(p) != i || !strings.Contains(p[len(p)-1], "192.0.2.1") || !strings.Contains(p[len(p)-1], other) {
			t.Errorf("%s has the problems %q", hosts[i].GetName(), p)
		}
	}
	if hosts[1].GetState() != controllerv1.HostState_HOST_STATE_WARNING || hosts[2].GetState() != down {
		t.Errorf("states %v and %v", hosts[1].GetState(), hosts[2].GetState())
	}
	if len(kept.GetProblems()) != 0 || kept.GetState() != up {
		t.Errorf("what the controller keeps was changed: %v", kept)
	}
	found := health.Endpoints(shared)
	if health.Healthy(found) || !strings.Contains(found[0].Text, "h2") || !strings.Contains(found[0].Text, "h3") {
		t.Errorf("findings %+v", found)
	}
	if health.Endpoints(nil) != nil {
		t.Error("no hosts share an endpoint, and something is said")
	}
}
