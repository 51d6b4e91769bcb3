package agent

import (
	"context"
	"slices"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
	"heddle/internal/spec"
)

// fakeClaims are controllers that answer claims.
type fakeClaims struct {
	claim func(context.Context, *controllerv1.PortClaim) (*controllerv1.PortAnswer, error)
	ended func(vm, adapter string) // nil for a test that does not look at it
}

func (f *fakeClaims) Claim(ctx context.Context, q *controllerv1.PortClaim) (*controllerv1.PortAnswer, error) {
	return f.claim(ctx, q)
}

func (f *fakeClaims) Ended(vm, adapter string) {
	if f.ended != nil {
		f.ended(vm, adapter)
	}
}

func (f *fakeClaims) Settle()  {}
func (f *fakeClaims) Changed() {}

// The controller is told when an adapter's connecting has ended: when the port is there, and also when it does not come
// to that.
func TestS78_TheControllerIsToldWhatCameOfAClaim(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("tap0", "02:00:00:00:00:01")
	defined := parse(t, base)
	defined.Switches[0].PortGroups[0].Binding = spec.Elastic
	var ended []string
	st := r.commands.statics
	claims := &fakeClaims{}
	st.Ask(claims)
	claims.claim = func(ctx context.Context, _ *controllerv1.PortClaim) (*controllerv1.PortAnswer, error) {
		a := &controllerv1.PortAnswer{Port: &controllerv1.StaticPort{Port: "17", Switch: "lab", PortGroup: "web"}}
		// The host's own file has that switch too.
		return a, r.Do(ctx, func() error { r.follows(nil); return nil })
	}
	claims.ended = func(vm, adapter string) {
		what := "not connected"
		if r.connected.port("one") != nil {
			what = "connected"
		}
		ended = append(ended, vm+"/"+adapter+" "+what)
	}
	for _, name := range []string{"a", "one"} { // the first one is declared in the file
		r.follows(defined)
		err := r.command(func(ctx context.Context) error {
			_, err := r.commands.Connect(ctx, api.Connect{VM: conflictVM, Adapter: "net0",
				Port: spec.Port{Name: name, PortGroup: "web", Device: "tap0"}})
			return err
		})
		if (err != nil) != (name == "a") {
			t.Errorf("port %s: %v", name, err)
		}
	}
	want := []string{conflictVM + "/net0 not connected", conflictVM + "/net0 connected"}
	if !slices.Equal(ended, want) {
		t.Errorf("told: %q", ended)
	}
}

// An adapter that is connected again while its static port is being released stays the port's: the answer that comes
// late takes from the guest nothing that is known of it.
func TestS79_AnAdapterThatIsConnectedWhileItsPortIsReleasedStaysKnown(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("tap0", "02:00:00:00:00:01")
	defined := parse(t, base)
	defined.Switches[0].PortGroups[0].Binding = spec.Elastic
	st := r.commands.statics
	bound := &controllerv1.PortAnswer{Port: &controllerv1.StaticPort{Port: "17", Switch: "lab", PortGroup: "web"}}
	connect := func(ctx context.Context) error {
		r.follows(defined)
		_, err := r.commands.Connect(ctx, api.Connect{VM: conflictVM, Adapter: "net0",
			Port: spec.Port{Name: "one", PortGroup: "web", Device: "tap0"}})
		return err
	}
	again := false
	st.Ask(&fakeClaims{claim: func(ctx context.Context, q *controllerv1.PortClaim) (*controllerv1.PortAnswer, error) {
		if q.GetRelease() {
			if again {
				return &controllerv1.PortAnswer{}, connect(ctx)
			}
			return &controllerv1.PortAnswer{}, nil
		}
		return bound, r.Do(ctx, func() error { r.follows(nil); return nil })
	}})
	if err := r.command(connect); err != nil {
		t.Fatal(err)
	}
	for _, again = range []bool{true, false} { // after the first one it is connected
		if err := r.command(func(ctx context.Context) error {
			return r.commands.Disconnect(ctx, api.Disconnect{Port: "one", Release: true})
		}); err != nil {
			t.Fatal(err)
		}
		if n := r.state.NIC(conflictVM, "net0"); (n != nil) != again {
			t.Errorf("connected meanwhile: %v; known of the adapter: %+v", again, n)
		}
	}
}
