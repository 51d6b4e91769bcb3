package reasons

import "heddle/internal/plan"

// Case is what is said of a reason in a case: at a port, of frames that were dropped for it.
type Case struct {
	// Told says what the guest did, for a reason that says all by itself.
	Told string
	// Permit is the setting of the port by which such frames pass; the zero value where it depends on the frame.
	Permit plan.Setting
	// OfFrame: no copy of the frame is made, so that the reason is about the frame and about no single receiver.
	OfFrame bool
	// Claimed names what was dropped that carried an IP address, as in "of IP from": advise adds the address.
	Claimed string
	// Advice is the rule of advise that reports each port at which frames are dropped for the reason; nil for none, and
	// where a rule of its own weighs more than that.
	Advice *Advice
	// Decides is what decides about the reason at a port besides the policy fields that name it: what was dropped under
	// another value of it is of the past. nil for nothing.
	Decides func(*plan.Port) string
}

// Advice is a rule of advise as its reason has it.
type Advice struct {
	Rule string // its name
	// About says in a few words what is misconfigured, Why what the consequence is, Fix what to do in general.
	About, Why, Fix string
	// Dropped names the frames: "of a DHCP server".
	Dropped string
}
