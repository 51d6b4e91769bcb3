package observe

import (
	"fmt"

	"heddle/internal/plan"
)

// ViolationCode names what an owner does against its port's policy. "" means no violation.
type ViolationCode string

// What an owner does (S3, S4, D2).
const (
	// GroupAddress: its adapter uses a group address.
	GroupAddress ViolationCode = "group-address"
	// AddressInUse: its adapter uses the address of another port, or of an uplink's device.
	AddressInUse ViolationCode = "address-in-use"
	// AddressChanged: its adapter uses another address than the port's, and the policy rejects that.
	AddressChanged ViolationCode = "address-changed"
)

// Violation is what an owner does against its port's policy; the zero value means no violation.
type Violation struct {
	Code ViolationCode
	// Uses is the address that its adapter uses, Has the port's.
	Uses, Has plan.MAC
	// Whose is the port or uplink that has the address, for AddressInUse; Uplink: it is an uplink.
	Whose  string
	Uplink bool
	// Owner is who owns both ports, if they could share the address under another policy.
	Owner string
}

// None says that nothing is wrong.
func (v Violation) None() bool { return v.Code == "" }

// Text says it in a sentence for people, "" without a violation. An unknown code is its own text.
func (v Violation) Text() string {
	switch v.Code {
	case GroupAddress:
		return fmt.Sprintf("the adapter uses the group address %s", v.Uses)
	case AddressInUse:
		return fmt.Sprintf("the adapter uses %s, the MAC of %s %s%s", v.Uses, v.kind(), v.Whose, v.mayShare())
	case AddressChanged:
		return fmt.Sprintf("the adapter uses %s instead of %s, and the policy rejects MAC changes", v.Uses, v.Has)
	}
	return string(v.Code)
}

func (v Violation) kind() string {
	if v.Uplink {
		return "uplink"
	}
	return "port"
}

// mayShare says which policy would let a port use the MAC of another port of its owner.
func (v Violation) mayShare() string {
	if v.Owner == "" {
		return ""
	}
	return ", which is " + v.Owner +
		"'s too: it may where the policies of both ports accept forged transmits and MAC changes"
}
