package agent

import (
	"context"
	"strings"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
	"heddle/internal/api"
	"heddle/internal/spec"
)

// unsettled are the claims that the host would make now.
func (r *rig) unsettled() (list []*controllerv1.PortClaim) {
	r.t.Helper()
	if err := r.command(func(ctx context.Context) (err error) {
		list, err = r.commands.statics.Unsettled(ctx)
		return err
	}); err != nil {
		r.t.Fatal(err)
	}
	return list
}

// A VM is deleted while no controller answers, or has answered the claim of its port: the claim may bind the port
// afterwards, and then it is given up again. An adapter that is connected anew keeps what it gets.
func TestS79_APortThatIsBoundAfterItWasGivenUpIsGivenUpAgain(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("tap0", "02:00:00:00:00:01")
	defined := parse(t, base)
	defined.Switches[0].PortGroups[0].Binding = spec.Elastic
	st := r.commands.statics
	var asked []*controllerv1.PortClaim
	// The host's own file has that switch too: the definition counts until a claim is asked for.
	handed := func(ctx context.Context, is bool) error {
		return r.Do(ctx, func() error {
			if r.follows(nil); is {
				r.follows(defined)
			}
			return nil
		})
	}
	st.Ask(&fakeClaims{claim: func(ctx context.Context, q *controllerv1.PortClaim) (*controllerv1.PortAnswer, error) {
		if asked = append(asked, q); !q.GetRelease() {
			_ = handed(ctx, false)
		}
		return nil, cluster.ErrNoController
	}})
	connect := func(ctx context.Context) error {
		if err := handed(ctx, true); err != nil {
			return err
		}
		_, err := r.commands.Connect(ctx, api.Connect{VM: conflictVM, Adapter: "net0",
			Port: spec.Port{Name: "one", PortGroup: "web", Device: "tap0"}})
		return err
	}
	bound := func(ctx context.Context) error {
		return st.Bound(ctx, &controllerv1.StaticPorts{Whole: true, Put: []*controllerv1.StaticPort{{Port: "17",
			Switch: "lab", PortGroup: "web", Vm: conflictVM, Adapter: "net0"}}})
	}
	must := func(do func(context.Context) error) {
		t.Helper()
		if err := r.command(do); err != nil {
			t.Fatal(err)
		}
	}
	must(connect)
	err := r.command(func(ctx context.Context) error {
		return r.commands.Disconnect(ctx, api.Disconnect{Port: "one", Release: true})
	})
	if err == nil || !strings.Contains(err.Error(), "given up as soon as a controller answers") {
		t.Errorf("the command says: %v", err)
	}
	if last := asked[len(asked)-1]; !last.GetRelease() || last.GetPort() != "" || last.GetVm() != conflictVM {
		t.Errorf("asked last: %v", last)
	}
	if list := r.unsettled(); len(list) != 1 || !list[0].GetRelease() || list[0].GetPort() != "" {
		t.Fatalf("while nobody has answered: %v", list)
	}
	if saved := r.saved(); len(saved.GivenUp) != 1 {
		t.Errorf("saved: %+v", saved.GivenUp)
	}
	settle := func(q *controllerv1.PortClaim) {
		must(func(ctx context.Context) error { return st.Settled(ctx, q, &controllerv1.PortAnswer{}) })
	}
	settle(r.unsettled()[0])
	if list := r.unsettled(); len(list) != 0 {
		t.Errorf("after the answer: %v", list)
	}
	must(bound) // the claim was carried out after that
	list := r.unsettled()
	if len(list) != 1 || !list[0].GetRelease() || list[0].GetPort() != "17" {
		t.Fatalf("once it is bound: %v", list)
	}
	settle(list[0])
	if list := r.unsettled(); len(list) != 0 || r.state.NIC(conflictVM, "net0") != nil {
		t.Errorf("after it was given up again: %v, %+v", list, r.state.NIC(conflictVM, "net0"))
	}
	must(connect)
	must(bound)
	if list := r.unsettled(); len(list) != 0 {
		t.Errorf("an adapter that was connected again: %v", list)
	}
}
