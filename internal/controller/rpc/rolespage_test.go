package rpc

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/access/roles"
)

// onRolesPage is a row of the table of calls in docs/reference/roles.md.
type onRolesPage struct{ who, granted string }

// rolesPage reads the table, by call.
func rolesPage(t *testing.T) map[string]onRolesPage {
	t.Helper()
	rows := map[string]onRolesPage{}
	for line := range strings.Lines(string(must(os.ReadFile("../../../docs/reference/roles.md"))(t))) {
		cells := strings.Split(line, " | ")
		if name, is := strings.CutPrefix(cells[0], "| `"); is && len(cells) == 4 {
			rows[strings.TrimSuffix(name, "`")] = onRolesPage{cells[1], cells[2]}
		}
	}
	return rows
}

// mayCall reports whether a caller gets beyond the rule of a call, by the page: with a role for the cluster, or for a
// part. role is "" for a caller whose token counts for nothing.
func (r onRolesPage) mayCall(role roles.Role, part bool) bool {
	named := r.who == "every role" || slices.Contains(strings.FieldsFunc(r.who, func(c rune) bool {
		return c == ',' || c == ' '
	}), string(role))
	switch {
	case r.who == "everybody, also without a token":
		return true
	case role == "" || r.who == "everybody who signed in":
		return false
	case r.who == "everybody with a token":
		return true
	}
	return named && (!part || r.granted == "a part")
}

// calledByPeople are the calls of the services at the port for people and tools.
func calledByPeople() (list []protoreflect.MethodDescriptor) {
	protoregistry.GlobalFiles.RangeFilesByPackage("heddle.controller.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for k := range s.Methods().Len() {
				if s.Name() != "HostService" && s.Name() != "ControllerService" {
					list = append(list, s.Methods().Get(k))
				}
			}
		}
		return true
	})
	return list
}

// turnedAway reports whether a caller was refused for want of a token or a role.
func (p posted) turnedAway() bool {
	return slices.Contains([]string{"unauthenticated", "permission_denied", "resource_exhausted"}, p.Code)
}

// Every call at the port for people and tools is answered and refused as the page of roles says, for callers without a
// token, with one that counts for nothing, and with each role for the cluster and for a part of it.
func TestTheRolesPageIsWhatTheServerDoes(t *testing.T) {
	f := answersPeople(t)
	f.define(clusterText)
	page, calls := rolesPage(t), calledByPeople()
	if len(calls) < 50 || len(page) != len(calls)+1 {
		t.Fatalf("the page has %d calls, with that for metrics, and the contract %d", len(page), len(calls))
	}
	type caller struct {
		name string
		by   *http.Client
		role roles.Role
		part bool
	}
	const wrong = "a wrong token"
	callers := []caller{{"no token", f.with("").http, "", false},
		{wrong, f.with("Bearer ht1.nonsense").http, "", false}}
	for _, role := range roles.All() {
		number := controllerv1.AccessRole(controllerv1.AccessRole_value["ACCESS_ROLE_"+
			strings.ToUpper(strings.ReplaceAll(string(role), "-", "_"))])
		all := f.with("Bearer " + f.made(string(role), number, day).GetToken())
		part, _ := f.scoped(string(role)+" of a part", number, "dvs/web")
		callers = append(callers, caller{string(role), all.http, role, false},
			caller{string(role) + " of a part", part.http, role, true})
	}
	// What would end the test, or asks etcd's members, which there are none of here.
	notMade := []string{"RotateRoot", "TakeSnapshot", "RemoveController", "JoinCluster", "ListControllers",
		"CreateControllerToken"}
	for _, m := range calls {
		t.Run(string(m.Name()), func(t *testing.T) {
			row, there := page[string(m.Name())]
			if !there {
				t.Fatal("it is not on the page")
			}
			for _, c := range callers {
				may := row.mayCall(c.role, c.part)
				if may && (slices.Contains(notMade, string(m.Name())) || c.name == wrong) {
					continue // who shows a token that counts for nothing may leave it out
				}
				got := postsBy(t, c.by, "https://"+f.address, m, "json", []byte("{}"))
				// A call that is about a part asks for the part, which an empty request does not name: who has one is
				// refused by what the call is about.
				unnamed := c.part && may && row.granted == "a part" && got.Code == "permission_denied"
				if got.turnedAway() != !may && !unnamed {
					t.Errorf("%s: %s %s; by the page: %v", c.name, got.Code, got.Message, may)
				}
			}
		})
	}
}
