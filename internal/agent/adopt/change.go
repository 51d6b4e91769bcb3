package adopt

import (
	"time"

	"heddle/internal/agent/state"
	"heddle/internal/host/hostnet"
	"heddle/internal/host/reach"
	"heddle/internal/observe/undone"
	"heddle/internal/spec"
)

// Change is a change of the configuration that affects the path to the host's own addresses and is on trial: how to
// undo it, and who must answer for it to stay. It is in the journal before it is made.
type Change struct {
	// Phase is Waiting or Reverting.
	Phase Phase `json:"phase"`
	// What was asked for: "apply /etc/heddle/heddle.yaml", "port move vmk0".
	What string `json:"what"`
	// Place is the boot and the network namespace in which the change was made, as in a Record.
	Place string       `json:"place"`
	Risks []reach.Risk `json:"risks"`
	// File is the configuration before the change, nil if the change leaves it as it is.
	File *state.Source `json:"file,omitempty"`
	// Slice is what a controller had sent the host before the change, nil if the change leaves it as it is.
	Slice *SliceBefore `json:"slice,omitempty"`
	// Ports are the run-time ports and overrides that the change affects, as they were before it.
	Ports []PortBefore `json:"ports,omitempty"`
	// Kept, KeptObjects and Numbers are the fields of state.State before the change.
	Kept        []state.Kept       `json:"kept,omitempty"`
	KeptObjects []state.KeptObject `json:"keptObjects,omitempty"`
	Numbers     []state.Number     `json:"numbers,omitempty"`
	// Uplinks are the uplinks that commands had drained or blocked before the change, nil if the change leaves them as
	// they are.
	Uplinks *[]state.Maintenance `json:"uplinks,omitempty"`
	// Interfaces are the interfaces at risk, with what the host had on them.
	Interfaces []Interface `json:"interfaces,omitempty"`
	// Asks are the questions that were answered before the change. If there are none, only the operator can confirm, or
	// Controllers.
	Asks []reach.Ask `json:"asks,omitempty"`
	// Controllers: the change came from a controller, and stays where some controller of the cluster answers. Answered
	// is when the latest question was asked that one has answered since; Resumed is how many agents have taken the
	// change up.
	Controllers bool          `json:"controllers,omitzero"`
	Answered    time.Duration `json:"-"`
	Resumed     int           `json:"resumed,omitzero"`
	// MadeAt is when the change was begun (CLOCK_BOOTTIME); Within is how long it may stay unconfirmed.
	MadeAt time.Duration `json:"madeAt"`
	Within time.Duration `json:"within"`
	// Agreed: the operator has confirmed the change. Reached: those who were asked have answered since the change.
	Agreed  bool `json:"agreed,omitzero"`
	Reached bool `json:"-"`
	// Reason is why the change is undone.
	Reason undone.Reason `json:"why,omitzero"`
}

// SliceBefore is what a controller had sent the host, nil for nothing.
type SliceBefore struct {
	Was *state.Slice `json:"was"`
}

// PortBefore is a run-time port and its overrides; the port is nil if it did not exist.
type PortBefore struct {
	Name     string          `json:"name"`
	Port     *spec.Port      `json:"port,omitempty"`
	Override *state.Override `json:"override,omitempty"`
}

// Interface is one of the host's interfaces with what the host had on it.
type Interface struct {
	Config   *hostnet.Config   `json:"config"`
	Settings []hostnet.Setting `json:"settings,omitempty"`
}

// Judge decides what happens to the change at the instant now (CLOCK_BOOTTIME), and why it is undone.
func (c *Change) Judge(now time.Duration) (v Verdict, why undone.Reason) {
	switch {
	case c.Phase != Waiting:
		return Wait, why
	case c.Agreed || c.Reached:
		return Keep, why
	case c.Controllers:
		return c.judgeControllers(now)
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

// Bounds of the times within which somebody has to answer or to confirm.
const (
	LeastWait = time.Second
	MostWait  = 24 * time.Hour
)

// Deadline is when something ends that has so much time left, the zero time where it has none.
func Deadline(left time.Duration) time.Time {
	if left <= 0 {
		return time.Time{}
	}
	return time.Now().Add(left).Round(time.Millisecond).UTC()
}

// Left returns how long the change may still stay unconfirmed.
func (c *Change) Left(now time.Duration) time.Duration { return max(0, c.MadeAt+c.Within-now) }
