package agent

import (
	"context"
	"testing"

	"heddle/internal/api"
	"heddle/internal/spec"
)

func (r *rig) reconnect(p spec.Port) (out *api.Applied, err error) {
	err = r.command(func(ctx context.Context) error {
		out, err = r.commands.Reconnect(ctx, api.Connect{Port: p})
		return err
	})
	return out, err
}

func (r *rig) disconnect(q api.Disconnect) error {
	return r.command(func(ctx context.Context) error { return r.commands.Disconnect(ctx, q) })
}

func TestReconnectTakesTheDeviceOfAGuestThatDied(t *testing.T) {
	r := newRig(t, base)
	if err := r.connect(spec.Port{Name: "dead/net0", PortGroup: "web", Device: "vnet0",
		MAC: "52:54:00:00:00:01"}); err != nil {
		t.Fatal(err)
	}
	next := spec.Port{Name: "next/net0", PortGroup: "web", Device: "vnet0", MAC: "52:54:00:00:00:02"}
	if err := r.connect(next); !invalid(err) {
		t.Errorf("connect took a device that is in use: %v", err)
	}
	out, err := r.reconnect(next)
	if err != nil || planned(r.Active().Plan, "dead/net0") != nil || planned(r.Active().Plan, "next/net0") == nil ||
		len(out.Changes) != 2 {
		t.Fatalf("%v, %+v", err, out)
	}
	n := planned(r.Active().Plan, "next/net0").Number
	next.PortGroup = "other"
	if _, err := r.reconnect(next); err != nil || planned(r.Active().Plan, "next/net0").PortGroup != "other" ||
		planned(r.Active().Plan, "next/net0").Number != n {
		t.Errorf("another port group: %v, %+v", err, planned(r.Active().Plan, "next/net0"))
	}
	if out, err := r.reconnect(next); err != nil || len(out.Changes) != 0 {
		t.Errorf("once more: %v %+v", err, out)
	}
	next.PortGroup = "nowhere"
	if _, err := r.reconnect(next); !notFound(err) || planned(r.Active().Plan, "next/net0").PortGroup != "other" {
		t.Errorf("into a port group that is not there: %v", err)
	}
	if _, err := r.reconnect(spec.Port{Name: "a", PortGroup: "web", Device: "vnet0"}); !invalid(err) ||
		planned(r.Active().Plan, "next/net0") == nil {
		t.Errorf("the name of a declared port: %v", err)
	}
	if _, err := r.reconnect(spec.Port{Name: "x", PortGroup: "web", Device: "pa"}); !invalid(err) {
		t.Errorf("the device of a declared port: %v", err)
	}
}

func TestDisconnectByDevice(t *testing.T) {
	r := newRig(t, base)
	if err := r.connect(spec.Port{Name: "vm", PortGroup: "web", Device: "tap0"}); err != nil {
		t.Fatal(err)
	}
	if err := r.connect(spec.Port{Name: "bare", PortGroup: "web"}); err != nil {
		t.Fatal(err)
	}
	for _, q := range []api.Disconnect{{Device: "tap9"}, {}, {Port: "tap0"}} {
		if err := r.disconnect(q); err == nil || invalid(err) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if err := r.disconnect(api.Disconnect{Device: "pa"}); !invalid(err) {
		t.Errorf("the device of a declared port: %v", err)
	}
	if err := r.disconnect(api.Disconnect{Device: "tap0"}); err != nil || planned(r.Active().Plan, "vm") != nil ||
		planned(r.Active().Plan, "bare") == nil {
		t.Errorf("tap0: %v", err)
	}
}

// notFound reports whether the request names something that does not exist.
func notFound(err error) bool { return !invalid(err) && unfit(err) }
