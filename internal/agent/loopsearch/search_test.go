package loopsearch

import (
	"testing"
	"time"

	"heddle/internal/agent/active"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/announce"
	"heddle/internal/uplinks/loops"
)

// What the search wants depends on its document: the blocks that the last agent left are wanted from the start, each
// with its reason, and the same is wanted however often somebody asks.
func TestTheDocumentSaysWhatIsWanted(t *testing.T) {
	a, b := plan.PortID{Switch: "lab", Name: "a"}, plan.PortID{Switch: "lab", Name: "b"}
	since := time.Now()
	blocks := []loops.Block{{Port: a, Seen: true, Why: "devices", Since: since}, {Port: b, Why: "probes", Since: since}}
	s := New(Host{Blocks: &blocks})
	if w := s.Want(&active.Value{}); len(w.Blocked) != 0 {
		t.Errorf("before the start: %v", w)
	}
	s.Start(func() (announce.Sender, error) { t.Error("a socket is opened"); return nil, nil })
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	w := s.Want(&active.Value{})
	if len(w.Blocked) != 2 || w.Blocked[a].Code != problem.LoopSeen || w.Blocked[b].Code != problem.LoopProbed {
		t.Errorf("wanted: %v", w)
	}
	if !w.Equal(s.Want(&active.Value{Generation: 7})) || w.Equal(active.Want{}) {
		t.Error("it wants something else each time")
	}
}
