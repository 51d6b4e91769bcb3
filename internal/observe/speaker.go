package observe

import "heddle/internal/plan"

// Speaker says which port sent last from a MAC that its sibling owns (S111).
type Speaker struct {
	Owner plan.PortID
	MAC   plan.MAC
	Port  plan.PortID
}
