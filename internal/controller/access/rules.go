package access

import (
	"strings"

	"heddle/internal/identity"
)

// Rule says who may make a call, and whether it is recorded.
type Rule struct {
	// Role is the least that may make it.
	Role identity.Role
	// Audit: the call is recorded, also where it succeeds. Refusals always are.
	Audit bool
	// Look: it shows what guests send, for which an admin or a token that says so is needed.
	Look bool
}

// hostsPath is where calls are that are passed on to a host.
const hostsPath = "/hosts/"

// RuleOf is the rule of a call, /PACKAGE.Service/Call. One that nobody has thought about is an admin's, and recorded.
func RuleOf(procedure string) Rule {
	call := procedure[strings.LastIndexByte(procedure, '/')+1:]
	if strings.HasPrefix(procedure, hostsPath) {
		return Rule{Role: identity.Viewer} // only calls that look pass, and those into frames go by Look
	}
	switch call {
	// What only reads. Each is listed here, since a call may be added elsewhere by who does not know this list.
	case "GetDefinition", "ListHosts", "ListFleetPorts", "LocatePorts", "ListControllers", "ListStaticPorts",
		"GetControllerStatus",
		"GetTrust",
		"GetRoot", "WhoAmI", "ListMoves", "ListChanges", "CompareDefinitions", "GetPastDefinition",
		"metrics":
		return Rule{Role: identity.Viewer}
	// What is done with ports, and changes nothing else.
	case "ReleaseStaticPort", "SettleStaticPort", "SyncHosts", "MovePort", "CancelMove", "ActivateMove":
		return Rule{Role: identity.Operator, Audit: true}
	// The lists of who may do what, and of who did what, show more than the network; a backup has every VM's identity.
	case "ListAPITokens", "ListAudit", "VerifyAudit", "ExportBackup", "CompareBackup":
		return Rule{Role: identity.Admin}
	}
	return Rule{Role: identity.Admin, Audit: true}
}
