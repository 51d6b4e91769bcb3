package adopt

import (
	"time"

	"heddle/internal/agent/state"
	"heddle/internal/host/hostnet"
	"heddle/internal/host/reach"
	"heddle/internal/observe/undone"
	"heddle/internal/spec"
)

// Change is a change of the configuration that affects the way to the host's own addresses and is being tried: how to
// undo it, and who must answer for it to stay. It is in the journal before it is made.
type Change struct {
	// Phase is Waiting or Reverting.
	Phase Phase `json:"phase"`
	// What was asked for: "apply /etc/heddle/heddle.yaml", "port move vmk0".
	What string `json:"what"`
	// Place is the boot and the network namespace in which it was made, as of a Record.
	Place string       `json:"place"`
	Risks []reach.Risk `json:"risks"`
	// File is the configuration before, nil where that stays.
	File *state.Source `json:"file,omitempty"`
	// Slice is what a controller had handed the host before, nil where that stays.
	Slice *SliceBefore `json:"slice,omitempty"`
	// Ports are those run-time ports and overrides that the change changes, as they were.
	Ports []PortBefore `json:"ports,omitempty"`
	// Kept and Numbers are state.State's before the change.
	Kept    []state.Kept   `json:"kept,omitempty"`
	Numbers []state.Number `json:"numbers,omitempty"`
	// Uplinks are the uplinks that commands had drained or blocked before, where the change changes that.
	Uplinks *[]state.Maintenance `json:"uplinks,omitempty"`
	// Interfaces are what the host had on those at risk.
	Interfaces []Interface `json:"interfaces,omitempty"`
	// Asks answered before the change. Without any, only the operator's word counts.
	Asks []reach.Ask `json:"asks,omitempty"`
	// MadeAt is when it was begun (CLOCK_BOOTTIME), Within how long it may go unconfirmed.
	MadeAt time.Duration `json:"madeAt"`
	Within time.Duration `json:"within"`
	// Agreed: the operator has confirmed it. Reached: those who were asked have answered since.
	Agreed  bool `json:"agreed,omitzero"`
	Reached bool `json:"-"`
	// Reason is why it is taken back.
	Reason undone.Reason `json:"why,omitzero"`
}

// SliceBefore is what a controller had handed the host, nil for nothing.
type SliceBefore struct {
	Was *state.Slice `json:"was"`
}

// PortBefore is a run-time port, nil where there was none, and what commands had set on it.
type PortBefore struct {
	Name     string          `json:"name"`
	Port     *spec.Port      `json:"port,omitempty"`
	Override *state.Override `json:"override,omitempty"`
}

// Interface is one of the host's and what it had.
type Interface struct {
	Config   *hostnet.Config   `json:"config"`
	Settings []hostnet.Setting `json:"settings,omitempty"`
}

// Judge decides what happens to the change at the instant now, and why it is taken back.
func (c *Change) Judge(now time.Duration) (v Verdict, why undone.Reason) {
	switch {
	case c.Phase != Waiting:
		return Wait, why
	case c.Agreed || c.Reached:
		return Keep, why
	case now < c.MadeAt+c.Within:
		return Wait, why
	case len(c.Asks) == 0:
		return Revert, undone.Reason{Code: undone.NotConfirmed, Within: c.Within}
	}
	var silent []string
	for _, a := range reach.Missing(c.Asks) {
		silent = append(silent, a.String())
	}
	if len(silent) == 0 {
		return Revert, undone.Reason{Code: undone.WitnessesUnsteady, Within: c.Within}
	}
	return Revert, undone.Reason{Code: undone.WitnessesSilent, Who: silent, Within: c.Within}
}

// Left is how long it may still go unconfirmed.
func (c *Change) Left(now time.Duration) time.Duration { return max(0, c.MadeAt+c.Within-now) }
