package compile

import (
	"strings"
	"testing"

	"heddle/internal/binding"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

func TestS42_S45_UplinksInUseAreThoseTheTeamSelects(t *testing.T) {
	all := "u1 u2 u3"
	for _, c := range []struct {
		name            string
		policy          spec.TeamingPolicy
		active, standby string
		number          uint32
		up              string
		want            string
	}{
		{"explicit takes the first", spec.ExplicitOrder, "u2 u1", "u3", 1, all, "u2"},
		{"explicit takes the next", spec.ExplicitOrder, "u2 u1", "u3", 1, "u1 u3", "u1"},
		{"standby when no active is left", spec.ExplicitOrder, "u2 u1", "u3", 1, "u3", "u3"},
		{"an unused uplink never serves", spec.ExplicitOrder, "u2", "", 1, "u1 u3", ""},
		{"originating port hashes the number", spec.OriginatingPort, "u1 u2 u3", "", 4, all, "u2"},
		{"and hashes again over the rest", spec.OriginatingPort, "u1 u2 u3", "", 4, "u1 u3", "u1"},
		{"source MAC spreads over all active", spec.SourceMAC, "u1 u3", "u2", 1, all, "u1 u3"},
		{"IP hash over those that are up", spec.IPHash, "u1 u2 u3", "", 1, "u2 u3", "u2 u3"},
		{"a LAG uses the members that are up", spec.OriginatingPort, "lag", "u1", 1, "u1 u2 u3", "u2 u3"},
		{"a LAG with one member left", spec.IPHash, "lag", "", 1, "u1 u3", "u3"},
		{"standby when a LAG has no member left", spec.ExplicitOrder, "lag", "u1", 1, "u1", "u1"},
		{"a standby LAG", spec.SourceMAC, "u1", "lag", 1, "u2 u3", "u2 u3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sw := &plan.Switch{Name: "lab", LAGs: []*plan.LAG{{Name: "lag", Uplinks: []string{"u2", "u3"}}}}
			d := binding.Desired{Facts: plan.Facts{}, Attachments: map[plan.PortID]binding.Attachment{}}
			for _, name := range strings.Fields(all) {
				id := plan.PortID{Switch: "lab", Name: name}
				sw.Uplinks = append(sw.Uplinks, &plan.Uplink{ID: id})
				d.Facts[id] = plan.Fact{Up: strings.Contains(c.up, name)}
				d.Attachments[id] = binding.Attachment{}
			}
			p := &plan.Port{Number: c.number, Policy: &plan.Effective{}}
			p.Policy.Teaming.Policy.V = c.policy
			p.Policy.Teaming.Active.V, p.Policy.Teaming.Standby.V = strings.Fields(c.active), strings.Fields(c.standby)
			if got := strings.Join(UplinksInUse(d, sw, p), " "); got != c.want {
				t.Errorf("%s: %q in use, want %q", c.name, got, c.want)
			}
		})
	}
}
