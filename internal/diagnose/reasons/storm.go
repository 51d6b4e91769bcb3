package reasons

import "heddle/internal/abi"

// storm returns the reason that is decided before a frame is flooded. Which rate to raise depends on the frame, and
// advise weighs what a port floods: its rule is there.
func storm() Reason {
	return Reason{Reason: abi.ReasonStormControl, About: Either,
		Meaning: "The port has sent more broadcast, multicast or unknown-unicast frames than its storm " +
			"control lets through in that time.",
		Policy: "stormControl.broadcast, .multicast, .unknownUnicast",
		Change: "Find out why the guest sends that many; if it should, raise the rate of that kind of frames, " +
			"or set it to 0 for no limit.",
		Command: "heddle stats PORT", Statements: []string{"D27"}, Case: Case{OfFrame: true}}
}
