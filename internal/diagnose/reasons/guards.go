package reasons

import (
	"fmt"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// guards returns the reasons for owners that use addresses that are not their own, or offer services that they may not.
func guards() []Reason {
	return slices.Concat(addressGuard(), []Reason{
		{Reason: abi.ReasonGuestDHCPServer, About: Frame,
			Meaning: "The guest answered DHCP or DHCPv6 as a server does, and may not.",
			Policy:  "security.dhcpServer",
			Change:  "Set `security: {dhcpServer: accept}` on the port group of the network's DHCP servers.",
			Command: apply, Statements: []string{"S87", "D32"},
			Case: Case{Told: "the guest answers DHCP, and its port may not",
				Permit: plan.Setting{Path: "security.dhcpServer", Value: string(spec.Accept)},
				Advice: &Advice{Rule: "guest-dhcp-server", About: "a guest answers DHCP, and may not",
					Why: "the network's own server is the one that is heard; if this guest is meant to be it, " +
						"no client gets an address from it",
					Fix:     "Set dhcpServer: accept for the network's own servers; else stop the guest's.",
					Dropped: "of a DHCP server"}}},
		{Reason: abi.ReasonGuestRouterAdvertisement, About: Frame,
			Meaning: "The guest advertised itself as an IPv6 router, and may not.",
			Policy:  "security.routerAdvertisements",
			Change: "Set `security: {routerAdvertisements: accept}` on the port group of the network's " +
				"routers.",
			Command: apply, Statements: []string{"D32"},
			Case: Case{Told: "the guest says that it is an IPv6 router, and its port may not",
				Permit: plan.Setting{Path: "security.routerAdvertisements", Value: string(spec.Accept)},
				Advice: &Advice{Rule: "guest-router", About: "a guest says that it is an IPv6 router, and may not",
					Why: "its neighbours do not take it for their way out; if it is meant to be it, they have " +
						"none",
					Fix: "Set routerAdvertisements: accept for the network's own routers; else stop the " +
						"guest's.",
					Dropped: "of an IPv6 router"}}},
	})
}

// addressGuard returns the reasons of the address guard. What to do about one depends on the address.
func addressGuard() []Reason {
	const list = "Add the address to `security: {addressGuard: {addresses: […]}}` at the port, if it is the guest's " +
		"own; else see who in the guest uses it."
	listed := func(p *plan.Port) string { return fmt.Sprint(p.Policy.AddressGuard.Addresses.V, p.Addresses) }
	return []Reason{
		{Reason: abi.ReasonIPSourceNotAllowed, About: Frame,
			Meaning: "The guest sent IP from an address that is not one of its port's, or in a form that " +
				"hides the address.",
			Policy: "security.addressGuard.enabled", Change: list, Command: apply,
			Statements: []string{"S86", "S108", "D32"}, Case: Case{Claimed: "of IP from", Decides: listed}},
		{Reason: abi.ReasonARPSenderNotAllowed, About: Frame,
			Meaning: "The guest sent ARP in the name of an address that is not one of its port's, or ARP " +
				"that can't be read.",
			Policy: "security.addressGuard.enabled", Change: list, Command: apply,
			Statements: []string{"S108", "D32"}, Case: Case{Claimed: "of ARP in the name of", Decides: listed}},
		{Reason: abi.ReasonNDTargetNotAllowed, About: Frame,
			Meaning: "The guest announced to its IPv6 neighbours an address that is not one of its port's, " +
				"or hides what it tells them.",
			Policy: "security.addressGuard.enabled", Change: list, Command: apply, Statements: []string{"S108", "D32"},
			Case: Case{Claimed: "of neighbour discovery about", Decides: listed}},
	}
}
