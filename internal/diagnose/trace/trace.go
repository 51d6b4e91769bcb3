package trace

import (
	"time"

	"heddle/internal/abi"
	"heddle/internal/model"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Host is what a trace needs: a plan, the facts of the devices, and the content of the tables. A trace does not change
// it.
type Host struct {
	Plan    *plan.Plan
	Facts   plan.Facts
	Learned []model.MAC
	Sent    []model.Sent
	Spent   []model.Spent
	// Awake are the ports whose wait for their guest is over (S99).
	Awake map[plan.PortID]uint32
	// Speakers are the ports that sent last with the MACs of their siblings (S111).
	Speakers []model.Speaker
	Now      time.Duration // on the clock of Learned, Sent and Spent
	// Reach is what tunnels know of the endpoints of other hosts, by switch.
	Reach map[string]overlay.Reach
	// Known is what the tunnels of switches know of the stations of their segments, by switch.
	Known map[string]model.Known
	// Kernel runs the kernel program on the same tables; nil if there is none.
	Kernel Kernel
	// NewModel is model.New, or a substitute with a fault, for tests.
	NewModel func(*plan.Plan, plan.Facts, time.Duration) *model.Host
	// File is the path of the active configuration; "" if there is none.
	File string
	// RunTime are the ports connected by command; ByCommand is what commands have set on ports, by port.
	RunTime   map[string]spec.Port
	ByCommand map[string]ByCommand
	// Groups are the port groups, for finding one that a port could be moved to.
	Groups []Group
	// Seen are the addresses of metered flows that Request.From or To may name; Metered says whether any flows are
	// metered.
	Seen    []Seen
	Metered bool
	// Neighbours are MACs that the host itself knows from its own requests, without the port. Refused are the source
	// addresses of refused frames.
	Neighbours, Refused []Seen
	// Silent are the ports that are silent because their guests run elsewhere.
	Silent map[plan.PortID]Silence
	// Waiting says why frames of ports and uplinks do not reach the switch yet.
	Waiting map[plan.PortID]problem.Problem
}

// ByCommand is what commands have set on a port.
type ByCommand struct {
	// PortGroup is the port group in the file, if a command moved the port to another.
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
	VNI          uint32 // of the overlay segment of its ports; 0 for none
}

// Kernel runs the kernel program in recording mode.
type Kernel interface {
	// Frame runs a frame of at least 14 bytes, all zero from byte KernelBytes on, from a connected port or uplink.
	Frame(at plan.PortID, frame []byte) (Outcome, error)
	// FrameFrom runs one that the tunnel of a switch hands on, in a VNI in which the switch has ports.
	FrameFrom(sw string, vni uint32, frame []byte) (Outcome, error)
}

// KernelBytes is how many bytes of a frame a dry run can take. The rules read nothing after them.
const KernelBytes = 3584

// Outcome is what happened to a frame. The order of copies and refusals has no meaning.
type Outcome struct {
	Delivered bool
	Reason    abi.Reason
	Copies    []model.Copy
	Refused   []model.Refusal
}
