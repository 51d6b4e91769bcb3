package api

import (
	"fmt"
	"time"
)

// MemberTrouble is what keeps a host from its cluster.
type MemberTrouble struct {
	// Text says what is wrong, Remedy what to do, Command shows more, or does it.
	Text, Remedy, Command string
}

// awayFor is how long a host may be without a controller before that is a trouble: controllers are restarted.
const awayFor = 30 * time.Second

// Trouble says what keeps the host from the controllers of its cluster; nil for nothing. A host that is in no cluster
// and never was has none.
func (m *Membership) Trouble(now time.Time) *MemberTrouble {
	const rejoin = "make a token at a controller (heddle host token), then join again here (heddle host join " +
		"--replace): its ports go on meanwhile"
	away := now.Sub(m.Since).Round(time.Second)
	switch {
	case !m.Member && m.Error != "":
		return &MemberTrouble{fmt.Sprintf("this host cannot say who it is in its cluster, so that no controller is "+
			"asked: %s", m.Error), "put back the file from a backup and restart the agent; or " + rejoin,
			"heddle host show"}
	case !m.Member && m.Epoch > 0:
		return &MemberTrouble{fmt.Sprintf("this host has revision %d of a cluster's definition, and its identity in "+
			"that cluster is gone: no controller is asked", m.Revision),
			"put back the directory identity of the state directory and restart the agent; or " + rejoin,
			"heddle host show"}
	case !m.Member || m.Connected != "":
		return nil
	case !m.Expires.IsZero() && now.After(m.Expires):
		return &MemberTrouble{fmt.Sprintf("this host has no controller, and its certificate expired on %s: %s",
			m.Expires.UTC().Format(time.DateTime), m.why()), "look for the controllers: one of them renews the " +
			"certificate; if it has been expired for too long, " + rejoin, "heddle host show"}
	case away < awayFor:
		return nil
	}
	return &MemberTrouble{fmt.Sprintf("this host has had no controller for %s: %s", away, m.why()),
		"see that a controller runs and is reached from here; a host that was taken out of its cluster leaves it " +
			"(heddle host leave)", "heddle host show"}
}

// why is why no controller answers.
func (m *Membership) why() string {
	if m.Error == "" {
		return "none has answered yet"
	}
	return m.Error
}
