package advise

import (
	"fmt"
	"net/netip"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/diagnose/reasons"
	"heddle/internal/diagnose/trace"
	"heddle/internal/plan"
)

func guardRules() []Rule {
	return append([]Rule{
		{"address-guard", api.FindingWrong, "a guest uses an IP address that is not listed at its port",
			"frames dropped as `ip-source-not-allowed`, `arp-sender-not-allowed` or `nd-target-not-allowed`, and the " +
				"latest address",
			"what the guest sends in the name of that address is lost: it has a new address, a virtual one, or poses " +
				"as somebody else",
			"List the address at the port if it is the guest's own; else find out who in the guest uses it.",
			guarded},
	}, recordedRules()...)
}

// recordedRules are those that the records of reasons have: each reports the ports at which frames were dropped.
func recordedRules() (list []Rule) {
	for _, r := range reasons.Reasons() {
		a := r.Case.Advice
		if a == nil {
			continue
		}
		list = append(list, Rule{a.Rule, api.FindingNote, a.About, "frames dropped as `" + r.Name() + "`", a.Why, a.Fix,
			func(l *look) []api.Finding {
				return l.refusals(r.Reason, "%s "+a.Dropped+" %s dropped %s", func(*plan.Port) trace.Known {
					return trace.Known{}
				})
			}})
	}
	return list
}

func guarded(l *look) (found []api.Finding) {
	guards := slices.DeleteFunc(reasons.Reasons(), func(r reasons.Reason) bool { return r.Case.Claimed == "" })
	l.eachPort(func(_ *plan.Switch, p *plan.Port, c *counts) {
		for _, r := range guards {
			n := c.dropped(r.Reason)
			if n == 0 {
				continue
			}
			last := l.claimed(p.ID, r.Reason)
			f := onPort(p, "%s %s addresses that are not the port's were dropped %s", frames(n), r.Case.Claimed,
				l.period(p.ID, dropsOf(r.Reason)))
			if last.IsValid() {
				f.Sign += fmt.Sprintf(", the latest: %s", last)
			}
			cause, _ := l.explain.Explain(p.ID, r.Reason, trace.Known{Claimed: last})
			f.Sign += "; " + cause.Why
			found = append(found, remedy(l.dated(f, p.ID, dropsOf(r.Reason)), cause))
		}
	})
	return found
}

// claimed returns the source address of the latest frame of a port that was refused for a reason; not valid if none is
// known.
func (l *look) claimed(id plan.PortID, why abi.Reason) netip.Addr {
	v := l.port[id]
	if v == nil {
		return netip.Addr{}
	}
	for _, r := range v.Refused {
		if a, err := netip.ParseAddr(r.Address); err == nil && r.Reason == why.String() {
			return a
		}
	}
	return netip.Addr{}
}
