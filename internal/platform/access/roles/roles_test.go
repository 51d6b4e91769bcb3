package roles

import (
	"strings"
	"testing"
)

func TestScope_Covers(t *testing.T) {
	cluster, dvs, web, db := Cluster(), Scope{Switch: "dvs"}, GroupOf("dvs/web"), GroupOf("dvs/db")
	other := Scope{Switch: "lab"}
	for _, c := range []struct {
		a, b Scope
		want bool
	}{
		{cluster, cluster, true}, {cluster, dvs, true}, {cluster, web, true},
		{dvs, cluster, false}, {dvs, dvs, true}, {dvs, web, true}, {dvs, other, false},
		{dvs, GroupOf("lab/web"), false},
		{web, cluster, false}, {web, dvs, false}, {web, web, true}, {web, db, false}, {web, GroupOf("lab/web"), false},
	} {
		if got := c.a.Covers(c.b); got != c.want {
			t.Errorf("%s covers %s: %v", c.a, c.b, got)
		}
	}
}

func TestParseScope(t *testing.T) {
	for text, want := range map[string]string{"": "cluster", "cluster": "cluster", "dvs": "dvs", "dvs/web": "dvs/web",
		"dvs/a/b": "dvs/a/b", "/web": "", "dvs/": "", "a\nb": "", strings.Repeat("x", 300): ""} {
		s, err := ParseScope(text)
		if (err == nil) != (want != "") || err == nil && s.Short() != want {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	}
}

// Each role has these permissions, and no role but admin may manage, or read who did what.
func TestRole_Permissions(t *testing.T) {
	for role, want := range map[Role]string{Viewer: "view", Operator: "view operate", NetworkAdmin: "view network",
		SecurityAdmin: "view security", Captures: "view capture",
		Admin: "view operate network security capture audit manage", "": "", "root": "", "Admin": ""} {
		var got []string
		for _, p := range role.Permissions() {
			got = append(got, string(p))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v", role, got)
		}
		if role.Valid() != (want != "") || (role.Known() == nil) != role.Valid() {
			t.Errorf("%s is known: %v", role, role.Known())
		}
	}
}

func TestAccess(t *testing.T) {
	a := NewAccess(Grant{Role: Viewer, Scope: GroupOf("dvs/web")},
		Grant{Role: NetworkAdmin, Scope: Scope{Switch: "lab"}})
	switch {
	case a.SeesAll(), a.Sees("dvs", "db"), a.SeesSwitch("other"), a.Has(Network, GroupOf("dvs/web")),
		a.Has(Network, Cluster()), a.Has(Security, Scope{Switch: "lab"}):
		t.Error("it allows too much")
	case !a.Sees("dvs", "web"), !a.SeesSwitch("dvs"), !a.Sees("lab", "x"), !a.Has(Network, GroupOf("lab/x")):
		t.Error("it allows too little")
	}
	if g, ok := a.Somewhere(Network); !ok || g.Scope.Switch != "lab" {
		t.Errorf("%v, %v", g, ok)
	}
	if _, ok := a.Somewhere(Manage, Capture); ok {
		t.Error("it allows to manage somewhere")
	}
	more := NewAccess(Grant{Role: Admin, Scope: Scope{Switch: "dvs"}}, Grant{Role: Admin, Scope: Scope{Switch: "lab"}})
	if !more.Covers(a) || a.Covers(more) || !a.Covers(nil) || (*Access)(nil).Covers(a) {
		t.Error("what covers what")
	}
	if (*Access)(nil).Has(View, Cluster()) || (*Access)(nil).SeesSwitch("dvs") {
		t.Error("nothing allows something")
	}
}

func TestRefusal_SaysWhoMay(t *testing.T) {
	r := &Refusal{Who: "ann (token abc)", Needs: []Permission{Security}, Of: GroupOf("dvs/web"),
		What: "security.promiscuous of portGroup dvs/web", Has: NewAccess(Grant{Role: NetworkAdmin})}
	const want = "security.promiscuous of portGroup dvs/web: this needs security-admin or admin of port group " +
		"dvs/web, and ann (token abc) has network-admin"
	if got := r.Error(); got != want {
		t.Errorf("it says %s", got)
	}
}

func TestGrant_Check(t *testing.T) {
	ann := Who{Person, "ann"}
	for i, bad := range []Grant{{}, {Who: ann}, {Who: ann, Role: "root"}, {Who: Who{"user", "ann"}, Role: Viewer},
		{Who: Who{Person, "a\nb"}, Role: Viewer}, {Who: Who{Person, ""}, Role: Viewer},
		{Who: ann, Role: Viewer, Scope: Scope{PortGroup: "web"}},
		{Who: ann, Role: Admin, Scope: Scope{PortGroup: "web"}},
		{Who: ann, Role: Viewer, Scope: Scope{Switch: "a/b"}}} {
		if bad.Check() == nil {
			t.Errorf("%d, %v, can be one", i, bad)
		}
	}
	good := Grant{Who: ann, Role: Admin, Scope: GroupOf("dvs/web")}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}
