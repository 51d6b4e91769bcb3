package binding

import (
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// Attachment is how the kernel reaches a port's device.
type Attachment struct {
	Ifindex uint32
	// PeerRedirect: a veth whose other end is in another network namespace, so that frames can be handed to it
	// directly (K13).
	PeerRedirect bool
}

// Desired is the desired state of the kernel: the plan, the facts about the devices, and where the devices are. A
// port without a Fact or without an Attachment is not connected.
type Desired struct {
	Plan        *plan.Plan
	Facts       plan.Facts
	Attachments map[plan.PortID]Attachment
	// Reach is what each switch with a tunnel, by its name, knows of the endpoints of other hosts. A switch without an
	// entry speaks to nobody: the agent fills it from the file (overlay.Of) or from controllers.
	Reach map[string]overlay.Reach
}
