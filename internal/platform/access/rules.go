package access

import (
	"strings"

	"heddle/internal/platform/access/roles"
)

// Rule says who may make a call, and whether it is recorded.
type Rule struct {
	// Needs are the permissions of which the caller has to have one; none where everybody may call whom the controller
	// knows.
	Needs []roles.Permission
	// Judged: the call itself asks for each object that it is about, or shows the caller's part of the cluster alone. A
	// permission for any part of the cluster is enough to make it. Without it takes the permission for the whole
	// cluster.
	Judged bool
	// Open: who shows no token may call as well. The call itself records what comes of it.
	Open bool
	// Audit: the call is recorded, also where it succeeds. Refusals always are.
	Audit bool
	// Large: the request may have a body of up to largeBody bytes.
	Large bool
	// Empty: the request has no fields, so that nothing of its body is waited for.
	Empty bool
	// SignedIn: only who signed in may call.
	SignedIn bool
}

// hostsPath is where calls are that are passed on to a host.
const hostsPath = "/hosts/"

// Table are the rules of the calls, by their names.
type Table map[string]Rule

// Rules are those of all calls of the core; a capability of a program has its own beside them. Each is listed, since a
// call may be added elsewhere by who does not know this list: one that nobody has thought about takes who may manage
// the cluster, and is recorded.
func Rules() Table {
	t := Table{}
	add := func(r Rule, calls ...string) {
		for _, c := range calls {
			t[c] = r
		}
	}
	view := []roles.Permission{roles.View}
	// How people get a token, and give it back.
	add(Rule{Open: true, Empty: true}, "GetSignIn")
	add(Rule{Open: true}, "SignIn")
	add(Rule{SignedIn: true, Audit: true}, "SignOut")
	// What everybody may ask whom the controller knows.
	add(Rule{}, "WhoAmI", "GetTrust", "ExplainAccess")
	// What shows the caller's part of the cluster.
	add(Rule{Needs: view, Judged: true}, "GetDefinition", "ListHosts", "ListFleetPorts", "LocatePorts",
		"ListMoves", "ListChanges", "CompareDefinitions", "GetPastDefinition",
		"ListRollouts", "GetRollout")
	// What shows all of the cluster.
	add(Rule{Needs: view}, "ListControllers", "GetControllerStatus", "GetRoot", "ListSegments", "GetSegment",
		"GetNetworkHealth",
		"metrics")
	// What is done with ports, and changes nothing else.
	add(Rule{Needs: []roles.Permission{roles.Operate}, Judged: true, Audit: true}, "MovePort", "CancelMove",
		"ActivateMove", "ReassignPort")
	add(Rule{Needs: []roles.Permission{roles.Operate}, Audit: true}, "SyncHosts", "RunBenchmark")
	// The definition is judged field by field.
	shape := []roles.Permission{roles.Network, roles.Security}
	add(Rule{Needs: shape, Judged: true, Audit: true, Large: true}, "ApplyDefinition")
	add(Rule{Needs: shape, Judged: true, Audit: true}, "PauseRollout", "ResumeRollout", "AbortRollout")
	// The lists of who may do what, and of who did what, show more than the network.
	add(Rule{Needs: []roles.Permission{roles.Audit}}, "ListAPITokens", "ListAudit", "VerifyAudit", "ListGrants",
		"ListGroups", "WhoCan")
	// A backup has every VM's identity, of all of the cluster.
	add(Rule{Needs: []roles.Permission{roles.Manage}, Audit: true}, "ExportBackup")
	add(Rule{Needs: []roles.Permission{roles.Manage}, Audit: true, Large: true}, "CompareBackup", "ImportBackup")
	add(Rule{Needs: []roles.Permission{roles.Manage}, Audit: true}, "RemoveHost", "RetryHost", "CreateJoinToken",
		"CreateControllerToken", "RemoveController", "ConfirmRestored", "JoinCluster", "TakeSnapshot", "RotateRoot",
		"CreateAPIToken", "RevokeAPIToken", "CreateGrant", "RevokeGrant", "PutGroup", "RemoveGroup")
	return t
}

// Of is the rule of a call, /PACKAGE.Service/Call.
func (t Table) Of(procedure string) Rule {
	if strings.HasPrefix(procedure, hostsPath) { // only calls that look pass, and each of them is judged
		return Rule{Needs: []roles.Permission{roles.View, roles.Capture}, Judged: true}
	}
	if r, ok := t[callOf(procedure)]; ok {
		return r
	}
	return Rule{Needs: []roles.Permission{roles.Manage}, Audit: true}
}
