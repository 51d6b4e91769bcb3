package rpc

import (
	"testing"

	"google.golang.org/protobuf/proto"

	agentv1 "heddle/api/heddle/agent/v1"
	controllerv1 "heddle/api/heddle/controller/v1"
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
	a, ctx := acts{movers{people{c.Server}}}, t.Context()
	idOf := func(name string) string {
		c.fleet.mu.Lock()
		defer c.fleet.mu.Unlock()
		return c.fleet.names[name].id
	}
	meant := func(host string) *agentv1.PortIdentity {
		return &agentv1.PortIdentity{Host: idOf(host), Switch: "dvs", Vm: actsVM, Adapter: "net0", Device: "tap0"}
	}
	ask := &controllerv1.MovePortRequest{Port: "vm/eth0", To: "esx2"}
	if _, err := a.prepare(ctx, ask); err != nil {
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
