package agent

import (
	"strings"
	"testing"
)

// An agent that cannot read what was applied last leaves a switch alone that the kernel has: an older version of the
// history would take its ports away.
func TestS163_AStateThatIsNotValidReplacesNoSwitchInTheKernel(t *testing.T) {
	later := strings.Replace(readGuest, "name: lab", "invented: later, name: lab", 1)
	for what, prepare := range map[string]func(*rig){
		"a held device": func(r *rig) {
			r.dev.veth("pa", "02:00:00:00:00:0a")
			if err := r.apply(readGuest); err != nil {
				r.t.Fatal(err)
			}
		},
		"pins alone": func(r *rig) { r.pinned = true },
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, readPlain)
			prepare(r)
			r.state.Config.Content = later
			if err := r.ports.store.Save(r.state); err != nil {
				t.Fatal(err)
			}
			active := len(r.kernel.applied)
			err := r.restartWith(nil)
			if err == nil || !strings.Contains(err.Error(), "goes on forwarding") ||
				!strings.Contains(err.Error(), "invented") {
				t.Errorf("the error is %v", err)
			}
			if len(r.kernel.applied) != active || r.saved().Config.Content != later {
				t.Errorf("something was changed: %+v", r.saved().Config)
			}
		})
	}
}

// A version without switches is no switch to boot by.
func TestS163_ABootUsesNoVersionWithoutSwitches(t *testing.T) {
	r := newRig(t, readPlain)
	want := r.switches()
	if err := r.apply("switches: []\n"); err != nil {
		t.Fatal(err)
	}
	r.state.Config.Content = "switches: 7\n"
	if err := r.ports.store.Save(r.state); err != nil {
		t.Fatal(err)
	}
	if err := r.restartWith(nil); err != nil || r.switches() != want {
		t.Errorf("%v, active %q", err, r.switches())
	}
}
