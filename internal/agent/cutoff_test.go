package agent

import (
	"strings"
	"testing"

	"heddle/internal/agent/state"
	"heddle/internal/slice"
)

// A version from which the host went back is refused by the host itself, whatever controller sends it, unless somebody
// wants it to be tried again.
func TestS81_TheHostRefusesWhatItWentBackFrom(t *testing.T) {
	of := func(doc string) *state.Slice {
		key := slice.Key{Kind: slice.Switch, Name: "d"}
		return &state.Slice{Epoch: 1, Revision: 7, Objects: []slice.Object{{Key: key, Doc: []byte(doc)}}}
	}
	var none *state.Reverted
	once := none.Again(of("bad"), "no controller answered")
	forced := of("bad")
	forced.Forced = true
	for _, c := range []struct {
		what string
		next *state.Slice
		r    *state.Reverted
		want bool
	}{
		{"it never went back", of("bad"), nil, false},
		{"the same", of("bad"), once, true},
		{"the same, by force", forced, once, false},
		{"another", of("good"), once, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			why := triedBefore(c.next, c.r)
			if (why != "") != c.want || c.want && (!strings.Contains(why, "revision 7 cut this host off") ||
				!strings.Contains(why, "no controller answered")) {
				t.Errorf("%q", why)
			}
		})
	}
	if twice := once.Again(of("bad"), "again"); twice.Times != 2 || once.Times != 1 {
		t.Errorf("it went back %d times", twice.Times)
	}
	if other := once.Again(of("other"), "again"); other.Times != 1 {
		t.Errorf("it went back from another %d times", other.Times)
	}
}
