package reasons

import (
	"slices"
	"strings"
	"testing"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

func TestEveryReasonIsExplainedOnceAndInOrder(t *testing.T) {
	all := Reasons()
	var explained []abi.Reason
	for _, r := range all {
		explained = append(explained, r.Reason)
	}
	if want := slices.Collect(abi.Reasons()); !slices.Equal(explained, want) {
		t.Errorf("explained are %v, the dataplane has %v", explained, want)
	}
	for _, r := range all {
		if r.About == "" || r.Meaning == "" || r.Policy == "" || r.Change == "" || r.Command == "" ||
			len(r.Statements) == 0 {
			t.Errorf("%s: a field is empty: %+v", r.Name(), r)
		}
	}
}

func TestLookup(t *testing.T) {
	if r, ok := Lookup(abi.ReasonMACLimit); !ok || r.Name() != "mac-limit" {
		t.Errorf("Lookup(mac-limit) = %v, %v", r, ok)
	}
	for _, r := range []abi.Reason{abi.ReasonNone, abi.ReasonCount} {
		if e, ok := Lookup(r); ok {
			t.Errorf("Lookup(%d) explains %q", r, e.Meaning)
		}
	}
}

// TestEveryReasonOfAPolicyFieldNamesIt: if the table of policy fields lists a reason for a field, the explanation of
// that reason names the field.
func TestEveryReasonOfAPolicyFieldNamesIt(t *testing.T) {
	for _, f := range plan.Fields() {
		for _, why := range f.Reasons {
			r, ok := Lookup(why)
			if name := f.Path[strings.LastIndexByte(f.Path, '.')+1:]; !ok || !strings.Contains(r.Policy, name) {
				t.Errorf("%s causes %s, whose explanation names %q", f.Path, why, r.Policy)
			}
		}
	}
}
