package api

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCountersAreObjectsInJSON: a script reads .counters.packetsInUnicast.
func TestCountersAreObjectsInJSON(t *testing.T) {
	s := Stats{Counters: Counters{{"packetsOut", 1 << 63}, {"packetsIn", 2}}, Extra: Counters{},
		Drops: ReasonCounts{{"mac-limit", 7}}, Refused: ReasonCounts{}}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	want :=
		`{"switch":"","name":"","uplink":false,"counters":{"packetsOut":9223372036854775808,"packetsIn":2},"extra":{},"drops":{"mac-limit":7},"refused":{},"readAt":0}`
	var back Stats
	if err := json.Unmarshal(b, &back); err != nil || string(b) != want || !cmp.Equal(s, back) {
		t.Errorf("%s, want %s: %v %s", b, want, err, cmp.Diff(s, back))
	}
	for _, bad := range []string{`{"counters": [1]}`, `{"counters": {"a": -1}}`, `{"counters": 7}`} {
		if json.Unmarshal([]byte(bad), &back) == nil {
			t.Errorf("%s is read", bad)
		}
	}
}
