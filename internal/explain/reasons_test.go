package explain

import (
	"testing"

	"heddle/internal/abi"
)

func TestEveryReasonIsExplainedOnceAndInOrder(t *testing.T) {
	all := Reasons()
	if len(all) != int(abi.ReasonCount)-1 {
		t.Errorf("%d reasons are explained, the dataplane has %d", len(all), int(abi.ReasonCount)-1)
	}
	for i, r := range all {
		if want := abi.Reason(i + 1); r.Reason != want {
			t.Errorf("at %d: %s, want %s", i, r.Name(), want)
		}
		if r.About == "" || r.Meaning == "" || r.Policy == "" || r.Change == "" || r.Command == "" || len(r.Statements) == 0 {
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
