package rpc

import (
	"testing"

	"google.golang.org/protobuf/proto"

	agentv1 "heddle/api/heddle/agent/v1"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/fanout"
)

// means records which port a call meant.
func (m *mover) means(of *agentv1.PortIdentity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.meant = append(m.meant, of)
}

// A host is told which host and whose port each call about a move means, so that it refuses a call for what has its
// name since.
func TestS173_AControllerSaysWhichPortItMeans(t *testing.T) {
	c, from, to := movingHosts(t)
	a, ctx := moveCallsAt(c.Server), t.Context()
	idOf := func(name string) string {
		c.fleet.mu.Lock()
		defer c.fleet.mu.Unlock()
		return c.fleet.names[name].id
	}
	meant := func(host string) *agentv1.PortIdentity {
		return &agentv1.PortIdentity{Host: idOf(host), Switch: "dvs", Vm: actsVM, Adapter: "net0", Device: "tap0"}
	}
	ask := &controllerv1.MovePortRequest{Port: "vm/eth0", To: "esx2"}
	if _, err := a.Prepare(ctx, ask); err != nil {
		t.Fatal(err)
	}
	if q := to.asked[0]; q.GetHost() != idOf("esx2") || q.GetVm() != actsVM || q.GetAdapter() != "net0" {
		t.Errorf("the preparation means %v", q)
	}
	to.reports(actsPort(true))
	c.await("the port waits", func() bool { return len(c.ports()) == 2 })
	if _, err := a.ActivateMove(ctx, &controllerv1.ActivateMoveRequest{Port: "vm/eth0"}); err != nil {
		t.Error(err)
	}
	if _, err := a.CancelMove(ctx, &controllerv1.CancelMoveRequest{Port: "vm/eth0", Host: "esx2"}); err != nil {
		t.Error(err)
	}
	if _, err := a.ReassignPort(ctx, &controllerv1.ReassignPortRequest{Port: "vm/eth0", Host: "esx1",
		PortGroup: "db"}); err != nil {
		t.Error(err)
	}
	for host, m := range map[string]*mover{"esx1": from, "esx2": to} {
		if len(m.meant) == 0 {
			t.Errorf("host %s was asked for nothing", host)
		}
		for _, of := range m.meant {
			if !proto.Equal(of, meant(host)) {
				t.Errorf("host %s: %v, want %v", host, of, meant(host))
			}
		}
	}
}

// An agent of the version before refuses requests with fields that it does not know: it is told the names alone, also
// where it is another controller's host.
func TestS173_AnAgentThatDoesNotCheckIsToldTheNameAlone(t *testing.T) {
	c, from, to := movingHosts(t)
	a, ctx := moveCallsAt(c.Server), t.Context()
	for name, m := range map[string]*mover{"esx1": from, "esx2": to} {
		m.stop()
		c.await("it is away", func() bool { return c.state(name) == controllerv1.HostState_HOST_STATE_DISCONNECTED })
		m.before = true
		m.start()
		c.await("it is back", func() bool { return c.state(name) == controllerv1.HostState_HOST_STATE_UP })
	}
	if _, err := a.Prepare(ctx, &controllerv1.MovePortRequest{Port: "vm/eth0", To: "esx2"}); err != nil {
		t.Fatal(err)
	}
	to.reports(actsPort(true))
	c.await("the port waits", func() bool { return len(c.ports()) == 2 })
	_, activated := a.ActivateMove(ctx, &controllerv1.ActivateMoveRequest{Port: "vm/eth0", Host: "esx2"})
	_, cancelled := a.CancelMove(ctx, &controllerv1.CancelMoveRequest{Port: "vm/eth0", Host: "esx2"})
	_, assigned := a.ReassignPort(ctx, &controllerv1.ReassignPortRequest{Port: "vm/eth0", Host: "esx1",
		PortGroup: "db"})
	for _, err := range []error{activated, cancelled, assigned} {
		if err != nil {
			t.Error(err)
		}
	}
	if host := to.asked[0].GetHost(); host != "" || len(to.meant) != 2 || len(from.meant) != 1 {
		t.Errorf("prepared for %q; calls %v, %v", host, to.meant, from.meant)
	}
	for _, of := range append(to.meant, from.meant...) {
		if of != nil {
			t.Errorf("it is told %v", of)
		}
	}
}

// Controllers tell each other which hosts check whose port is meant; one of an earlier version tells of none.
func TestS173_ControllersTellWhichHostsCheckWhatIsMeant(t *testing.T) {
	c, _, to := movingHosts(t)
	here := c.hostsHere([]string{"esx2"}, false)
	if len(here) != 1 || !here[0].GetChecksMeant() {
		t.Fatalf("it tells %v", here)
	}
	to.stop()
	c.await("it is away", func() bool { return c.state("esx2") == controllerv1.HostState_HOST_STATE_DISCONNECTED })
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	h := c.fleet.names["esx2"]
	for checks, want := range map[bool]string{true: h.id, false: ""} {
		here[0].ChecksMeant = checks
		there := &fanout.Answers{Hosts: map[string]*controllerv1.HostHere{h.id: here[0]}}
		if got := h.meant(there); got != want {
			t.Errorf("checks %v: %q, want %q", checks, got, want)
		}
	}
}
