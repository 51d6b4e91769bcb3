package access

import (
	"strings"
	"testing"

	_ "heddle/api/heddle/controller/v1" // the contract whose calls are looked at
	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/pki"
)

// may are the roles that may make a call when they have it for all of the cluster, in a word of a letter each: viewer,
// operator, network admin, security admin, capture, admin. A small letter stands for who may make it as well with the
// role for a port group alone.
func may(r Rule) string {
	var b strings.Builder
	for i, role := range roles.All() {
		all := Caller{Token: signedIn(), Access: roles.NewAccess(roles.Grant{Role: role})}
		part := Caller{Token: signedIn(), Access: roles.NewAccess(roles.Grant{Role: role,
			Scope: roles.GroupOf("dvs/web")})}
		_, whole := all.may(r)
		_, some := part.may(r)
		letter := "VONSCA"[i : i+1]
		switch {
		case whole == nil && some == nil:
			b.WriteString(strings.ToLower(letter))
		case whole == nil:
			b.WriteString(letter)
		case some == nil:
			b.WriteString("!")
		default:
			b.WriteString(".")
		}
	}
	return b.String()
}

func signedIn() *pki.APIRecord { return &pki.APIRecord{Person: "ann"} }

// Who signs out is who signed in: the token of a tool is refused before anything is recorded as a change.
func TestS137_OnlyWhoSignedInSignsOut(t *testing.T) {
	rule := Rules()["SignOut"]
	for name, c := range map[string]struct {
		token *pki.APIRecord
		may   bool
	}{"signed in": {signedIn(), true}, "a tool": {&pki.APIRecord{Name: "ci"}, false}, "at the socket": {nil, false}} {
		t.Run(name, func(t *testing.T) {
			if _, err := (Caller{Token: c.token}).may(rule); (err == nil) != c.may {
				t.Errorf("signs out: %v", err)
			}
		})
	}
}

// Each role makes the calls that it is for, and no others.
func TestRules_EachRoleAndEachCall(t *testing.T) {
	const anybody, sees, seesAll, admin = "vonsca", "vonsca", "VONSCA", ".....A"
	want := map[string]string{
		"GetSignIn": anybody, "SignIn": anybody, "SignOut": anybody,
		"WhoAmI": anybody, "GetTrust": anybody, "ExplainAccess": anybody,
		"GetDefinition": sees, "ListHosts": sees, "ListFleetPorts": sees, "LocatePorts": sees,
		"ListMoves": sees, "ListChanges": sees, "CompareDefinitions": sees, "GetPastDefinition": sees,
		"ListRollouts": sees, "GetRollout": sees, "PauseRollout": "..ns.a", "ResumeRollout": "..ns.a",
		"AbortRollout":    "..ns.a",
		"ListControllers": seesAll, "GetControllerStatus": seesAll, "GetRoot": seesAll, "metrics": seesAll,
		"ListSegments": seesAll, "GetSegment": seesAll, "GetNetworkHealth": seesAll,
		"MovePort":     ".o...a",
		"ReassignPort": ".o...a", "CancelMove": ".o...a",
		"ActivateMove": ".o...a", "SyncHosts": ".O...A", "RunBenchmark": ".O...A",
		"ApplyDefinition": "..ns.a",
	}
	for name, r := range Rules() {
		t.Run(name, func(t *testing.T) {
			expected := want[name]
			if expected == "" {
				expected = admin
			}
			if got := may(r); got != expected {
				t.Errorf("%s may make it, and %s should", got, expected)
			}
			recorded := !strings.HasPrefix(name, "List") && name != "WhoCan" && name != "VerifyAudit" &&
				expected != sees && expected != seesAll
			if r.Audit != (recorded || name == "SignOut") {
				t.Errorf("recorded: %v", r.Audit)
			}
			if r.Open != (name == "GetSignIn" || name == "SignIn") {
				t.Errorf("without a token: %v", r.Open)
			}
		})
	}
}

// A call that nobody has given a rule is an admin's, and recorded; one to a host is judged when it is read.
func TestRules_OthersThanTheContract(t *testing.T) {
	for procedure, want := range map[string]string{
		"/heddle.controller.v1.Unheard/GetEverything": ".....A",
		"": ".....A",
		"/hosts/esx1/heddle.agent.v1.StateService/GetState": "vonsca",
		"/metrics": "VONSCA",
	} {
		t.Run(procedure, func(t *testing.T) {
			r := Rules().Of(procedure)
			if got := may(r); got != want || r.Audit != (want == ".....A") {
				t.Errorf("%s may make it, recorded: %v", got, r.Audit)
			}
		})
	}
}

// Who has been granted nothing makes no call but those that say so.
func TestRules_NobodyWithoutAGrant(t *testing.T) {
	for name, r := range Rules() {
		_, err := Caller{Name: "eve", Token: signedIn()}.may(r)
		if (err == nil) != (len(r.Needs) == 0) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
