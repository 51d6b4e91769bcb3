package agent

import (
	"context"
	"slices"
	"strings"
	"testing"

	"heddle/internal/agent/adopt"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// incomingTo prepares a port of the moving VM.
func (r *rig) incomingTo(p spec.Port) error {
	return r.command(func(ctx context.Context) error {
		_, err := r.commands.ConnectIncoming(ctx, api.Incoming{Connect: api.Connect{VM: movingVM, Adapter: "net0",
			Port: p}})
		return err
	})
}

// A guest that arrives gets neither another guest's MAC nor its name, whatever the name is for: a port that arrives
// beside the one that serves its guest has two more.
func TestS113_AGuestThatArrivesTakesNoMACAndNoNameOfAnother(t *testing.T) {
	const mac = "52:54:00:00:00:01"
	coming := spec.Port{Name: "vm/eth0", PortGroup: "web", Device: "tap0", MAC: mac}
	other := spec.Port{Name: "other/eth0", PortGroup: "other", Device: "tap1", MAC: mac}
	for name, c := range map[string]struct {
		others []spec.Port
		// serves: a port of the guest's runs here.
		serves bool
		says   string
	}{
		"the MAC of another guest": {[]spec.Port{other}, false, "port other/eth0 of another guest has it"},
		"a name that it needs while it moves": {[]spec.Port{{Name: "vm/eth0:incoming", PortGroup: "web"}}, true,
			"needs the name vm/eth0:incoming"},
		"a name that it needs when it has moved": {[]spec.Port{{Name: "vm/eth0:left", PortGroup: "web"}}, true,
			"needs the name vm/eth0:left"},
		"these names, and it needs none of them": {[]spec.Port{{Name: "vm/eth0:left", PortGroup: "web"}}, false, ""},
		"another guest with a MAC and a name": {[]spec.Port{{Name: "x", PortGroup: "web",
			MAC: "52:54:00:00:00:09"}}, true, ""},
		"a port of its own that serves the guest": {nil, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, base)
			for i, p := range c.others {
				err := r.hook(api.Connect{VM: anotherVM, Adapter: string(rune('a' + i)), Port: p})
				if err != nil {
					t.Fatal(err)
				}
			}
			if c.serves {
				r.dev.veth("tap7", mac)
				runs := coming
				runs.Device = "tap7"
				if err := r.hook(api.Connect{VM: movingVM, Adapter: "net0", Port: runs}); err != nil {
					t.Fatal(err)
				}
			}
			before := len(r.saved().Ports)
			err := r.incomingTo(coming)
			switch {
			case c.says == "" && err != nil:
				t.Error(err)
			case c.says != "" && (!invalid(err) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%v, want %q", err, c.says)
			case c.says != "" && len(r.saved().Ports) != before:
				t.Errorf("ports %+v", r.saved().Ports)
			}
		})
	}
}

// A port with the host's own addresses is nobody's to prepare.
func TestS113_AnAdoptedPortIsNotPrepared(t *testing.T) {
	r := newRig(t, base)
	r.records.journal = &adopt.Journal{Records: []*adopt.Record{{Port: spec.Port{Name: "vmk0"}}}}
	err := r.incomingTo(spec.Port{Name: "vmk0", PortGroup: "web", Device: "tap0"})
	if !invalid(err) || !strings.Contains(err.Error(), "heddle host-port release vmk0") {
		t.Error(err)
	}
}

// What ends a move is asked in the turn in which the port ends: the guest may have arrived since the first look.
func TestS100_AMoveThatIsCancelledAsItsGuestArrivesKeepsItsPort(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("tap0", "52:54:00:00:00:01")
	if err := r.incomingTo(spec.Port{Name: "vm/eth0", PortGroup: "web", Device: "tap0"}); err != nil {
		t.Fatal(err)
	}
	turns := 0
	m := r.moveCommands()
	done := make(chan error, 1)
	go func() { done <- m.CancelMove(t.Context(), api.PortMoveOf{Port: "vm/eth0"}) }()
	for ended := false; !ended; {
		select {
		case call := <-r.Calls():
			if call(); turns == 0 { // between the look and the end
				w := r.wait("vm/eth0")
				r.kernel.awake = map[plan.PortID]uint32{id("vm/eth0"): w.Number}
				r.waiting.Watch()
			}
			turns++
		case err := <-done:
			if ended = true; !invalid(err) {
				t.Errorf("the port of a guest that is here: %v", err)
			}
		}
	}
	if !slices.ContainsFunc(r.saved().Ports, func(p spec.Port) bool { return p.Name == "vm/eth0" }) {
		t.Error("the port is gone")
	}
}
