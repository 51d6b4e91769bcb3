package api

import (
	"time"

	"heddle/internal/diagnose"
)

// AdviseRequest asks what is misconfigured.
type AdviseRequest struct {
	// For is how long to measure; 0 takes what was counted since each port was connected. At most MaxAdviseFor.
	For time.Duration `json:"for"`
	// Since is how long ago a finding may have been seen last; 0 is AdviseSince. All asks for every finding.
	Since time.Duration `json:"since"`
	All   bool          `json:"all"`
}

// AdviseSince is how long ago a finding may have been seen last where nobody says otherwise.
const AdviseSince = 10 * time.Minute

// MaxAdviseFor bounds how long one request may measure.
const MaxAdviseFor = time.Hour

// FindingLevel says how bad a finding is.
type FindingLevel string

// The levels of a finding.
const (
	FindingWrong FindingLevel = "wrong" // frames are lost, doubled or go where they should not
	FindingNote  FindingLevel = "note"  // it works, and yet somebody should know
)

// Finding is one thing that is misconfigured, and where.
type Finding struct {
	Rule  string       `json:"rule"`
	Level FindingLevel `json:"level"`
	// Switch, and the object in it: at most one of PortGroup, Port, Uplink is set; none if the finding is about the
	// whole switch.
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup,omitempty"`
	Port      string `json:"port,omitempty"`
	Uplink    string `json:"uplink,omitempty"`
	// FirstSeen and LastSeen are when its cause was seen first, where that is known, and last. Now: it is so now.
	// Undated: it was counted before anybody kept dates.
	FirstSeen time.Time `json:"firstSeen,omitzero"`
	LastSeen  time.Time `json:"lastSeen,omitzero"`
	Now       bool      `json:"now,omitzero"`
	Undated   bool      `json:"undated,omitzero"`
	// Sign is what was measured, Why what that does.
	Sign string `json:"sign"`
	Why  string `json:"why"`
	// Change says what to do; Edit what to write into the configuration for that; Command carries it out or, where
	// nothing is to be changed on this host, shows what is behind it.
	Change  string         `json:"change"`
	Edit    *diagnose.Edit `json:"edit,omitempty"`
	Command string         `json:"command"`
}

// Object names what the finding is about: "port vm1/eth0", "port group web", "uplink uplink1", "switch lab".
func (f *Finding) Object() string {
	switch {
	case f.Port != "":
		return "port " + f.Port
	case f.PortGroup != "":
		return "port group " + f.PortGroup
	case f.Uplink != "":
		return "uplink " + f.Uplink
	}
	return "switch " + f.Switch
}

// Advice is what the rules found.
type Advice struct {
	// MeasuredSeconds is how long was measured; 0: what was counted since each port was connected.
	MeasuredSeconds float64 `json:"measuredSeconds"`
	// SinceSeconds is how long ago findings may have been seen last to be shown. Older is how many were seen last
	// before that, or at a time that is not known; asking for all shows them.
	SinceSeconds float64 `json:"sinceSeconds,omitzero"`
	Older        int     `json:"older"`
	// Rules, Ports and Uplinks are how many were looked at.
	Rules   int `json:"rules"`
	Ports   int `json:"ports"`
	Uplinks int `json:"uplinks"`
	// Findings are those that are wrong first, in the order of the rules.
	Findings []Finding `json:"findings"`
	// More is how many findings of a rule were left out, because they are the same of many ports.
	More map[string]int `json:"more,omitempty"`
}

// Healthy says that nothing is wrong; there may be notes.
func (a *Advice) Healthy() bool {
	for i := range a.Findings {
		if a.Findings[i].Level == FindingWrong {
			return false
		}
	}
	return true
}
