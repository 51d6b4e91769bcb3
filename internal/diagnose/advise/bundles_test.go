package advise

import "heddle/internal/plan/problem"

// unbundled has LACP heard at the uplinks u1 and u2, with these reasons; "" for none.
func unbundled(reasons ...string) func(*rig) {
	return func(r *rig) {
		for i, why := range reasons {
			if why != "" {
				r.uplink(i+1).Reason, r.uplink(i+1).ReasonCode = why, problem.LACPWithoutLAG
			}
		}
	}
}

// reasoned gives the uplink u1 this reason.
func reasoned(why string, code problem.Code) func(*rig) {
	return func(r *rig) { r.uplink(1).Reason, r.uplink(1).ReasonCode = why, code }
}
