package advise

import (
	"fmt"
	"net/netip"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/diagnose/trace"
	"heddle/internal/plan"
)

func guardRules() []Rule {
	return []Rule{
		{"address-guard", api.FindingWrong, "a guest uses an IP address that is not listed at its port",
			"frames dropped as `ip-source-not-allowed`, `arp-sender-not-allowed` or `nd-target-not-allowed`, and the " +
				"latest address",
			"what the guest sends in the name of that address is lost: it has a new address, a virtual one, or poses " +
				"as somebody else",
			"List the address at the port if it is the guest's own; else find out who in the guest " +
				"uses it.",
			guarded},
		{"guest-dhcp-server", api.FindingNote, "a guest answers DHCP, and may not",
			"frames dropped as `guest-dhcp-server`",
			"the network's own server is the one that is heard; if this guest is meant to be it, no client gets an " +
				"address from it",
			"Set dhcpServer: accept for the network's own servers; else stop the guest's.",
			guestDHCP},
		{"guest-router", api.FindingNote, "a guest says that it is an IPv6 router, and may not",
			"frames dropped as `guest-router-advertisement`",
			"its neighbours do not take it for their way out; if it is meant to be it, they have none",
			"Set routerAdvertisements: accept for the network's own routers; else stop the guest's.",
			guestRouter},
	}
}

// claims returns, for each guard, the text of what a guest did when the guard drops its frames.
func claims() []struct {
	why  abi.Reason
	what string
} {
	return []struct {
		why  abi.Reason
		what string
	}{
		{abi.ReasonIPSourceNotAllowed, "of IP from"},
		{abi.ReasonARPSenderNotAllowed, "of ARP in the name of"},
		{abi.ReasonNDTargetNotAllowed, "of neighbour discovery about"},
	}
}

func guarded(l *look) (found []api.Finding) {
	l.eachPort(func(_ *plan.Switch, p *plan.Port, c *counts) {
		for _, claim := range claims() {
			n := c.dropped(claim.why)
			if n == 0 {
				continue
			}
			last := l.claimed(p.ID, claim.why)
			f := onPort(p, "%s %s addresses that are not the port's were dropped %s", frames(n), claim.what,
				l.period(p.ID, dropsOf(claim.why)))
			if last.IsValid() {
				f.Sign += fmt.Sprintf(", the latest: %s", last)
			}
			cause, _ := l.explain.Explain(p.ID, claim.why, trace.Known{Claimed: last})
			f.Sign += "; " + cause.Why
			found = append(found, remedy(l.dated(f, p.ID, dropsOf(claim.why)), cause))
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

func guestDHCP(l *look) []api.Finding {
	return l.refusals(abi.ReasonGuestDHCPServer, "%s of a DHCP server %s dropped %s", func(*plan.Port) trace.Known {
		return trace.Known{}
	})
}

func guestRouter(l *look) []api.Finding {
	return l.refusals(abi.ReasonGuestRouterAdvertisement, "%s of an IPv6 router %s dropped %s",
		func(*plan.Port) trace.Known { return trace.Known{} })
}
