package uplinks

import (
	"testing"

	"heddle/internal/fabric"
	"heddle/internal/uplinks/linkproto"
)

// The uplinks that the loop sees and the tasks of a controller come at the same time: a plan that was made before is
// not set after a newer one.
func TestFabric_PlansAreSetInTheOrderInWhichTheyAreMade(t *testing.T) {
	f, set := &Fabric{}, 0
	f.set = func(linkproto.ProbePlan) {
		if set++; f.mu.TryLock() {
			f.mu.Unlock()
			t.Error("another plan can be made before this one is set")
		}
	}
	f.Hand("id", "esx1", []fabric.Secret{{}}, nil, true)
	f.Left()
	if set != 2 {
		t.Errorf("%d plans are set, want 2", set)
	}
}
