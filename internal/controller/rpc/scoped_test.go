package rpc

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	"heddle/api/heddle/agent/v1/agentv1connect"
	controllerv1 "heddle/api/heddle/controller/v1"
)

// scoped is somebody with a role for parts of the cluster.
func (f *front) scoped(name string, role controllerv1.AccessRole, parts ...string) (*person, string) {
	f.t.Helper()
	q := &controllerv1.CreateAPITokenRequest{Name: name, Role: role, Lasts: durationpb.New(day)}
	for _, p := range parts {
		sw, group, _ := strings.Cut(p, "/")
		q.Scopes = append(q.Scopes, &controllerv1.AccessScope{Switch: sw, PortGroup: group})
	}
	made := must(deskOf(f.Server).CreateAPIToken(f.t.Context(), q))(f.t)
	return f.with("Bearer " + made.GetToken()), made.GetId()
}

// Who may view one port group sees that, and nothing of others: no ports, no switches, no hosts, no history.
func TestScoped_AViewerSeesTheirPartAlone(t *testing.T) {
	f := answersPeople(t)
	f.define(clusterText)
	m := f.joins("esx1")
	m.start()
	f.await("it is up", func() bool { return f.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
	m.reports(&controllerv1.HostPort{Switch: "dvs", Name: "w1", PortGroup: "web", Mac: "52:54:00:00:00:01"},
		&controllerv1.HostPort{Switch: "dvs", Name: "d1", PortGroup: "db", Mac: "52:54:00:00:00:02"})
	f.await("both ports are known", func() bool { return len(f.ports()) == 2 })
	web, _ := f.scoped("tenant", controllerv1.AccessRole_ACCESS_ROLE_VIEWER, "dvs/web")
	ports := must(web.ListFleetPorts(t.Context(), &controllerv1.ListFleetPortsRequest{}))(t).GetPorts()
	if len(ports) != 1 || ports[0].GetName() != "w1" {
		t.Errorf("ports: %v", ports)
	}
	hosts := must(web.ListHosts(t.Context(), &controllerv1.ListHostsRequest{}))(t).GetHosts()
	for _, h := range hosts {
		if h.GetAddress() != "" || len(h.GetProblems()) > 0 || h.GetPorts() > 1 ||
			slices.ContainsFunc(h.GetSwitches(), func(s *controllerv1.HostSwitch) bool {
				return s.GetName() != "dvs"
			}) {
			t.Errorf("a host is shown as %v", h)
		}
	}
	text := must(web.GetDefinition(t.Context(), &controllerv1.GetDefinitionRequest{}))(t).GetContent()
	for _, others := range []string{"db", "other", "secret", "templates", "eno2"} {
		if strings.Contains(text, others) {
			t.Errorf("the definition shows %s:\n%s", others, text)
		}
	}
	has(t, "the definition", text, "name: web", "name: dvs")
	// Others' counters, events and flows on a host are not for them.
	resp, err := web.http.Post("https://"+f.address+"/hosts/esx1"+agentv1connect.StatsServiceListStatsProcedure,
		"application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("counters of a host: %d %s, %v", resp.StatusCode, body, err)
	}
	_, err = web.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{File: "f", Content: text})
	if connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a viewer changes the definition: %v", err)
	}
}

// A network admin of one port group reads their part, changes a VLAN in it and writes it back: nothing else changes.
// Security fields, other port groups and the whole cluster are refused, by name.
func TestScoped_AChangeIsJudgedFieldByField(t *testing.T) {
	f := answersPeople(t)
	f.define(clusterText)
	net, _ := f.scoped("net", controllerv1.AccessRole_ACCESS_ROLE_NETWORK_ADMIN, "dvs/web")
	sec, _ := f.scoped("sec", controllerv1.AccessRole_ACCESS_ROLE_SECURITY_ADMIN)
	apply := func(p *person, text string) error {
		_, err := p.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{File: "f.yaml", Content: text})
		return err
	}
	mine := must(net.GetDefinition(t.Context(), &controllerv1.GetDefinitionRequest{}))(t).GetContent()
	if err := apply(net, strings.Replace(mine, "access: 10", "access: 11", 1)); err != nil {
		t.Fatal(err)
	}
	all := must(people{f.Server}.GetDefinition(t.Context(), nil))(t).GetContent()
	has(t, "the definition", all, "access: 11", "access: 20", "name: secret", "eno2")
	const open = "name: web\n    security: {promiscuous: accept}"
	for what, c := range map[string]struct {
		who  *person
		text string
		says []string
	}{
		"security by a network admin": {net, strings.Replace(mine, "name: web", open, 1),
			[]string{"security.promiscuous of portGroup dvs/web: this needs security-admin or admin of port group"}},
		"another port group": {net, strings.Replace(mine, "  - name: web",
			"  - name: db\n    vlan: {access: 9}\n  - name: web", 1),
			[]string{"vlan.access of portGroup dvs/db"}},
		"a VLAN by a security admin": {sec, strings.Replace(all, "access: 11", "access: 12", 1),
			[]string{"vlan.access of portGroup dvs/web: this needs network-admin or admin"}},
		"a host's device by a security admin": {sec, strings.Replace(all, "eno2", "eno3", 1), []string{"template all"}},
	} {
		t.Run(what, func(t *testing.T) {
			err := apply(c.who, c.text)
			if connect.CodeOf(err) != connect.CodePermissionDenied {
				t.Fatal(err)
			}
			has(t, "the refusal", err.Error(), append(c.says, "heddle access explain")...)
		})
	}
	if now := must(people{f.Server}.GetDefinition(t.Context(), nil))(t).GetContent(); now != all {
		t.Errorf("something was changed:\n%s", now)
	}
	if err := apply(sec, strings.Replace(all, "name: web", open, 1)); err != nil {
		t.Errorf("a security admin: %v", err)
	}
	// Refusals and changes are in the record, each with the grant by which the call could be made at all.
	refused, done := 0, 0
	log := must(deskOf(f.Server).ListAudit(t.Context(), &controllerv1.ListAuditRequest{Most: 100}))(t)
	for _, e := range log.GetEntries() {
		switch {
		case e.GetCall() != "ApplyDefinition":
		case e.GetResult() == controllerv1.AuditResult_AUDIT_RESULT_REFUSED:
			refused++
			has(t, "an entry", e.GetGrant(), "-admin of ")
		case e.GetResult() == controllerv1.AuditResult_AUDIT_RESULT_DONE && e.GetWho() != "the controller":
			done++
		}
	}
	if refused != 4 || done != 2 {
		t.Errorf("%d refusals and %d changes are recorded", refused, done)
	}
}

// Roles are granted to groups and people and taken back, at once; who asks is told why.
func TestGrants_ToGroupsAndTokens(t *testing.T) {
	f := answersPeople(t)
	f.define(clusterText)
	admin := f.admin()
	tool, id := f.scoped("tool", controllerv1.AccessRole_ACCESS_ROLE_VIEWER, "dvs/db")
	web := &controllerv1.AccessScope{Switch: "dvs", PortGroup: "web"}
	explain := func() *controllerv1.ExplainAccessResponse {
		return must(tool.access.ExplainAccess(t.Context(), &controllerv1.ExplainAccessRequest{Scope: web,
			Field: "vlan.access"}))(t)
	}
	if e := explain(); e.GetAllowed() || !strings.Contains(e.GetWhy(), "network-admin or admin of port group dvs/web, "+
		"and tool (token "+id+") has viewer dvs/db") {
		t.Errorf("before: %v", e)
	}
	must(admin.access.PutGroup(t.Context(), &controllerv1.PutGroupRequest{Name: "net", Add: []*controllerv1.Grantee{
		{Kind: controllerv1.GranteeKind_GRANTEE_KIND_TOKEN, Name: id}}}))(t)
	g := must(admin.access.CreateGrant(t.Context(), &controllerv1.CreateGrantRequest{Scope: web,
		Role: controllerv1.AccessRole_ACCESS_ROLE_NETWORK_ADMIN,
		Who:  &controllerv1.Grantee{Kind: controllerv1.GranteeKind_GRANTEE_KIND_GROUP, Name: "net"}}))(t).GetGrant()
	f.await("the grant counts", func() bool { return explain().GetAllowed() })
	if e := explain(); len(e.GetBy()) != 1 || e.GetBy()[0].GetId() != g.GetId() ||
		!slices.Contains(e.GetGroups(), "net") {
		t.Errorf("with it: %v", e)
	}
	who := must(admin.access.WhoCan(t.Context(), &controllerv1.WhoCanRequest{Scope: web, Field: "vlan.access"}))(t)
	var names []string
	for _, g := range who.GetGrants() {
		names = append(names, fmt.Sprintf("%v %s", g.GetRole(), g.GetWho().GetName()))
	}
	if len(names) != 2 || !slices.Contains(names, "ACCESS_ROLE_NETWORK_ADMIN net") {
		t.Errorf("who can: %q", names)
	}
	if _, err := tool.access.WhoCan(t.Context(), &controllerv1.WhoCanRequest{Field: "vlan"}); connect.CodeOf(err) !=
		connect.CodePermissionDenied {
		t.Errorf("a tool reads who may do what: %v", err)
	}
	_, err := tool.access.ExplainAccess(t.Context(), &controllerv1.ExplainAccessRequest{Field: "vlan",
		Who: &controllerv1.Grantee{Kind: controllerv1.GranteeKind_GRANTEE_KIND_PERSON, Name: "ann"}})
	if connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a tool asks about somebody else: %v", err)
	}
	must(admin.access.RevokeGrant(t.Context(), &controllerv1.RevokeGrantRequest{Id: g.GetId()}))(t)
	f.await("it counts no more", func() bool { return !explain().GetAllowed() })
	must(admin.access.RemoveGroup(t.Context(), &controllerv1.RemoveGroupRequest{Name: "net"}))(t)
	for what, err := range map[string]error{
		"no such grant": func() error {
			_, err := admin.access.RevokeGrant(t.Context(), &controllerv1.RevokeGrantRequest{Id: g.GetId()})
			return err
		}(),
		"a grant to a token that is not there": func() error {
			_, err := admin.access.CreateGrant(t.Context(), &controllerv1.CreateGrantRequest{
				Role: controllerv1.AccessRole_ACCESS_ROLE_VIEWER,
				Who:  &controllerv1.Grantee{Kind: controllerv1.GranteeKind_GRANTEE_KIND_TOKEN, Name: "nope"}})
			return err
		}(),
	} {
		if connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
}
