package api

import (
	"time"

	"heddle/internal/diagnose"
)

// AdviseRequest asks what is misconfigured.
type AdviseRequest struct {
	// For is how long to measure; 0 uses what was counted since each port was connected. At most MaxAdviseFor.
	For time.Duration `json:"for"`
	// Since is the largest age of a finding, since it was last seen; 0 is AdviseSince. All requests every finding.
	Since time.Duration `json:"since"`
	All   bool          `json:"all"`
}

// AdviseSince is the largest age of a finding, since it was last seen, if the request gives none.
const AdviseSince = 10 * time.Minute

// MaxAdviseFor bounds how long one request may measure.
const MaxAdviseFor = time.Hour

// FindingLevel is the severity of a finding.
type FindingLevel string

// The levels of a finding.
const (
	FindingWrong FindingLevel = "wrong" // frames are lost, doubled or misdirected
	FindingNote  FindingLevel = "note"  // it works, but is worth knowing
)

// Finding is one thing that is misconfigured, and where.
type Finding struct {
	Rule  string       `json:"rule"`
	Level FindingLevel `json:"level"`
	// Switch, and the object in it: at most one of PortGroup, Port, Uplink is set; none if the finding is about the
	// whole switch. All are empty if it is about the host.
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup,omitempty"`
	Port      string `json:"port,omitempty"`
	Uplink    string `json:"uplink,omitempty"`
	// FirstSeen (if known) and LastSeen are when its cause was first and last seen. Now: the cause exists now. Undated:
	// it was counted before dates were kept.
	FirstSeen time.Time `json:"firstSeen,omitzero"`
	LastSeen  time.Time `json:"lastSeen,omitzero"`
	Now       bool      `json:"now,omitzero"`
	Undated   bool      `json:"undated,omitzero"`
	// Sign is what was measured, Why is its consequence.
	Sign string `json:"sign"`
	Why  string `json:"why"`
	// Change says what to do; Edit is what to write into the configuration for that; Command does it or, if nothing is
	// to be changed on this host, shows the state behind it.
	Change  string         `json:"change"`
	Edit    *diagnose.Edit `json:"edit,omitempty"`
	Command string         `json:"command"`
}

// Object names the object of the finding: "port vm1/eth0", "port group web", "uplink uplink1", "switch lab", "this
// host".
func (f *Finding) Object() string {
	switch {
	case f.Port != "":
		return "port " + f.Port
	case f.PortGroup != "":
		return "port group " + f.PortGroup
	case f.Uplink != "":
		return "uplink " + f.Uplink
	}
	if f.Switch == "" {
		return "this host"
	}
	return "switch " + f.Switch
}

// Advice is the result of the rules.
type Advice struct {
	// MeasuredSeconds is how long was measured; 0: the counters since each port was connected were used.
	MeasuredSeconds float64 `json:"measuredSeconds"`
	// SinceSeconds is the largest age of shown findings, since they were last seen. Older is how many were last seen
	// before that, or at an unknown time; All shows them.
	SinceSeconds float64 `json:"sinceSeconds,omitzero"`
	Older        int     `json:"older"`
	// Rules, Ports and Uplinks are how many were examined.
	Rules   int `json:"rules"`
	Ports   int `json:"ports"`
	Uplinks int `json:"uplinks"`
	// Findings are sorted: those that are wrong first, then in the order of the rules.
	Findings []Finding `json:"findings"`
	// More is, by rule, how many findings were left out because they are alike for many ports.
	More map[string]int `json:"more,omitempty"`
}

// Healthy reports that nothing is wrong; there may be notes.
func (a *Advice) Healthy() bool {
	for i := range a.Findings {
		if a.Findings[i].Level == FindingWrong {
			return false
		}
	}
	return true
}
