package uplinks

import (
	"testing"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

func TestVerdicts_AnUplinkIsOutWhileAnyoneSaysSo(t *testing.T) {
	v, u := Verdicts{}, plan.PortID{Switch: "s", Name: "u1"}
	steps := []struct {
		by    string
		why   problem.Code
		isNew bool
		want  problem.Code
	}{
		{"lacp", "", false, ""},
		{"lacp", problem.LACPNoPartner, true, problem.LACPNoPartner},
		{"lacp", problem.LACPNoPartner, false, problem.LACPNoPartner},
		{"lacp", problem.LACPSilent, true, problem.LACPSilent},
		{"beacon", problem.BeaconsDeaf, true, problem.BeaconsDeaf},
		{"beacon", "", true, problem.LACPSilent},
		{"lacp", "", true, ""},
	}
	for _, s := range steps {
		if got := v.Set(u, s.by, problem.Of(s.why)); got != s.isNew || v.Why(u).Code != s.want {
			t.Errorf("%s says %q: new %v, out %q; want %v, %q", s.by, s.why, got, v.Why(u), s.isNew, s.want)
		}
	}
}

// The same verdict in other words, such as the kernel's text of an error, is not new.
func TestVerdicts_OtherWordsAreNothingNew(t *testing.T) {
	v, u := Verdicts{}, plan.PortID{Switch: "s", Name: "u1"}
	v.Set(u, byLACP, problem.Problem{Code: problem.LACPNoSocket, Detail: "no sockets today"})
	if v.Set(u, byLACP, problem.Problem{Code: problem.LACPNoSocket, Detail: "there are no sockets today"}) {
		t.Error("a reworded sentence is taken for another verdict")
	}
	if got := v.Why(u).Text(); got != "lacp: there are no sockets today" {
		t.Errorf("shown is %q, want the newest words", got)
	}
	if !v.Set(u, byLACP, problem.Problem{Code: problem.LACPNoSocket, Have: 13, Detail: "there are no sockets today"}) {
		t.Error("another error of the kernel is not taken for another verdict")
	}
}
