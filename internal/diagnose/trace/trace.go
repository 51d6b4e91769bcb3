// Package trace finds out what a host's switches would do with a frame, and reports it in the user's words: the path
// stage by stage, who would get it, on which uplink with which tag, and for every refusal the policy that causes it,
// the level that set it and the command that changes it. The model and the kernel program, on copies of the live
// tables, both answer; a difference between them is reported. The package is pure: who runs the kernel program is
// handed in.
package trace

import (
	"time"

	"heddle/internal/abi"
	"heddle/internal/model"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Host is what is asked: a plan, what is seen of the devices, and what the tables hold. Nothing in it is changed.
type Host struct {
	Plan    *plan.Plan
	Facts   plan.Facts
	Learned []model.MAC
	Sent    []model.Sent
	Spent   []model.Spent
	// Awake are the ports whose wait for their guest is over (S99).
	Awake map[plan.PortID]uint32
	// Speakers are the ports that sent last from the MACs of their siblings (S111).
	Speakers []model.Speaker
	Now      time.Duration // on the clock of Learned, Sent and Spent
	// Kernel runs the kernel program on the same tables; nil where there is none.
	Kernel Kernel
	// NewModel is model.New, or makes one with a fault.
	NewModel func(*plan.Plan, plan.Facts, time.Duration) *model.Host
	// File is the path of the active configuration; "" if there is none.
	File string
	// RunTime are the ports connected by command, ByCommand what commands set otherwise than it was, by port.
	RunTime   map[string]spec.Port
	ByCommand map[string]ByCommand
	// Groups are the port groups, for finding one that a port could be moved to.
	Groups []Group
	// Seen are the addresses of metered flows that Request.From or To may name; Metered says whether any flows are
	// metered.
	Seen    []Seen
	Metered bool
	// Neighbours are MACs that the host itself knows by its own questions, without the port. Refused are the addresses
	// in whose name frames were refused.
	Neighbours, Refused []Seen
	// Waiting says why frames of ports and uplinks do not reach the switch yet.
	Waiting map[plan.PortID]problem.Problem
}

// ByCommand is what commands have set on a port.
type ByCommand struct {
	// PortGroup is the one that the file has, if a command moved the port to another.
	PortGroup string
	// Blocked: a command blocked or unblocked it.
	Blocked bool
}

// WhyWaiting returns why frames of a port or uplink that is not connected do not reach the switch.
func (h *Host) WhyWaiting(id plan.PortID) problem.Problem {
	if why := h.Waiting[id]; !why.None() {
		return why
	}
	return problem.Of(problem.NoDevice)
}

// Group is a port group: what a port inherits there, and what it may set for itself.
type Group struct {
	Switch, Name string
	Policy       plan.Effective
	Overrides    spec.Overrides
}

// Kernel runs the kernel program in recording mode.
type Kernel interface {
	// Frame gives a frame of at least 14 bytes, all zero from byte KernelBytes on, to a connected port or uplink.
	Frame(at plan.PortID, frame []byte) (Outcome, error)
}

// KernelBytes is how much of a frame a dry run takes as it is. The rules read nothing that far behind.
const KernelBytes = 3584

// Outcome is what became of a frame. The order of copies and refusals means nothing.
type Outcome struct {
	Delivered bool
	Reason    abi.Reason
	Copies    []model.Copy
	Refused   []model.Refusal
}
