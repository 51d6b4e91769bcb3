package attack

import (
	"testing"

	"heddle/internal/lab/report/topology"
)

func TestConclusions_LeaveOutWhatIsNotProtected(t *testing.T) {
	var s sums
	s.add(&measured{row: row{name: "open", open: true}, attacks: 100, sent: 10})
	if got := s.conclusions(); got != nil {
		t.Errorf("%q", got)
	}
	s.add(&measured{row: row{name: "lacp"}, attacks: 7, sent: 10, received: 9, changes: 2})
	const want = "Under 7 attacks of 1 kinds by guests, the victims lost 1 of 10 packets, and 2 things " +
		"changed at the uplinks."
	if got := s.conclusions(); len(got) != 1 || got[0] != want {
		t.Errorf("%q", got)
	}
	if n := len(topology.OfText(labFile)); n != 1 {
		t.Errorf("%d pictures of the lab", n)
	}
}
