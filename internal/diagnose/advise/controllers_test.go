package advise

import (
	"time"

	"heddle/internal/api"
)

func controllerCases() []ruleCase {
	of := func(m api.Membership) func(*rig) { return func(r *rig) { r.Membership = &m } }
	ago := func(d time.Duration) time.Time { return time.Unix(1_000_000, 0).Add(-d) } // the rig's time
	row := func(sign string, provoke, near api.Membership) ruleCase {
		return ruleCase{rule: "no-controller", provoke: of(provoke), near: of(near), object: "this host", sign: sign,
			fix: "heddle host show", level: api.FindingWrong}
	}
	full := func(why string) func(*rig) { return func(r *rig) { r.StateFault = why } }
	return []ruleCase{
		{rule: "state-directory", provoke: full("the file system is full"), near: full(""), object: "this host",
			sign: "the file system is full", fix: "heddle status", level: api.FindingWrong},
		row("no controller for 30s: connection refused", api.Membership{Member: true, Since: ago(30 * time.Second),
			Error: "connection refused"}, api.Membership{Member: true, Since: ago(29 * time.Second), Error: "x"}),
		row("no controller for 1m0s: none has answered yet", api.Membership{Member: true, Since: ago(time.Minute)},
			api.Membership{Member: true, Since: ago(time.Hour), Connected: "192.0.2.1:7411"}),
		row("cannot say who it is in its cluster, so that no controller is asked: it is damaged",
			api.Membership{Error: "it is damaged"}, api.Membership{}),
		row("revision 7 of a cluster's definition, and its identity in that cluster is gone",
			api.Membership{Epoch: 1, Revision: 7}, api.Membership{Member: true, Connected: "c", Epoch: 1, Revision: 7}),
		row("its certificate expired on 1970-01-12 12:46:40: none has answered yet",
			api.Membership{Member: true, Since: ago(0), Expires: ago(time.Hour)},
			api.Membership{Member: true, Since: ago(0), Expires: ago(-time.Hour)}),
	}
}
