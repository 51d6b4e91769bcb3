package agent

import (
	"context"
	"slices"
	"testing"

	"heddle/internal/api"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// A flush lists the table once, however many addresses it removes, and blocks the loop for a bounded number at a time.
func TestForgetMACs_ListsTheTableOnce(t *testing.T) {
	const theirs = 2*forgottenAtOnce + 100
	r := newRig(t, base)
	for i := range theirs + 7 {
		port := id("a")
		if i%1000 == 999 && len(r.kernel.macs) > 0 && i/1000 < 7 {
			port = id("b")
		}
		r.kernel.macs = append(r.kernel.macs, observe.MACEntry{Switch: "lab", VLAN: 100, Port: port,
			MAC: plan.MAC{2, 1, 0, byte(i >> 16), byte(i >> 8), byte(i)}})
	}
	kept := slices.DeleteFunc(slices.Clone(r.kernel.macs), func(e observe.MACEntry) bool { return e.Port == id("a") })
	if len(kept) != 7 {
		t.Fatalf("%d addresses of the other port", len(kept))
	}
	flush := func(dry bool) (removed []api.MAC) {
		if err := r.command(func(ctx context.Context) (err error) {
			removed, err = r.commands.ForgetMACs(ctx, api.ForgetMACs{Port: "a", DryRun: dry})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return removed
	}
	if n := len(flush(true)); n != theirs || len(r.kernel.forgets) != 0 {
		t.Errorf("the dry run has %d addresses and removed %v", n, r.kernel.forgets)
	}
	r.kernel.macsRead = 0
	if n := len(flush(false)); n != theirs {
		t.Errorf("%d addresses were removed, want %d", n, theirs)
	}
	if want := []int{forgottenAtOnce, forgottenAtOnce, 100}; r.kernel.macsRead != 1 ||
		!slices.Equal(r.kernel.forgets, want) {
		t.Errorf("the table was listed %d times, and removed in %v; want once, %v", r.kernel.macsRead,
			r.kernel.forgets, want)
	}
	if !slices.Equal(r.kernel.macs, kept) {
		t.Errorf("left are %v, want those of the other port", r.kernel.macs)
	}
	if none := flush(false); none == nil || len(none) != 0 {
		t.Errorf("a second flush: %v", none)
	}
}
