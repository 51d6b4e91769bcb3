package pki

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"heddle/internal/identity"
	"heddle/internal/platform/access/roles"
)

func TestAPITokens(t *testing.T) {
	token, r, err := NewAPIToken(APITerms{Name: "ci", Role: roles.Operator, Life: 30 * day, By: "anna"}, start())
	if err != nil {
		t.Fatal(err)
	}
	guessed := identity.NewAPIToken()
	guessed.ID = token.ID
	other, r2, err := NewAPIToken(APITerms{Name: "x", Role: roles.Admin, Life: day, By: "anna"}, start())
	if err != nil {
		t.Fatal(err)
	}
	read, err := identity.ParseAPIToken(token.Text())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		what string
		r    *APIRecord
		t    identity.APIToken
		now  time.Time
		want identity.TokenFault
	}{
		{"good", r, read, start(), 0},
		{"at its end", r, read, start().Add(30 * day), 0},
		{"expired", r, read, start().Add(30*day + 1), identity.Expired},
		{"withdrawn", nil, read, start(), identity.Unknown},
		{"guessed", r, guessed, start(), identity.Unknown},
		{"guessed and expired", r, guessed, start().Add(31 * day), identity.Unknown},
		{"another's", r2, read, start(), identity.Unknown},
		{"none", nil, identity.APIToken{}, start(), identity.Unknown},
		{"a record with nothing in it", &APIRecord{}, identity.APIToken{}, start(), identity.Unknown},
	} {
		t.Run(row.what, func(t *testing.T) {
			err := row.r.Check(row.t, row.now)
			if row.want == 0 && err != nil || row.want != 0 && !errors.Is(err, &identity.TokenError{Fault: row.want}) {
				t.Error(err)
			}
		})
	}
	if a := roles.NewAccess(r.Granted()...); a.Roles() != "operator" || a.Has(roles.Capture, roles.Cluster()) {
		t.Errorf("an operator's token allows %s", a.Roles())
	}
	look := &APIRecord{Role: roles.Viewer, Look: true}
	if a := roles.NewAccess(look.Granted()...); a.Roles() != "viewer, capture" {
		t.Errorf("a viewer's token that may look allows %s", a.Roles())
	}
	if err := r2.Check(other, start()); err != nil {
		t.Error(err)
	}
	for i, bad := range []APITerms{{Name: "x", Role: roles.Admin}, {Role: roles.Admin, Life: day},
		{Name: "x", Life: day}, {Name: strings.Repeat("x", 65), Role: roles.Admin, Life: day},
		{Name: "x", Role: "root", Life: day}, {Name: "x", Role: roles.Viewer, Life: day,
			Scopes: []roles.Scope{{PortGroup: "web"}}},
		{Name: "x", Role: roles.Viewer, Life: day, Scopes: make([]roles.Scope, 65)}} {
		if _, _, err := NewAPIToken(bad, start()); err == nil {
			t.Error(i, "is made")
		}
	}
}

// A controller of the version before reads role alone: it must neither take a token for more than it is, nor lose those
// that it knows.
func TestAPITokens_TheVersionBefore(t *testing.T) {
	type before struct {
		Role string `json:"role"`
		Look bool   `json:"look"`
	}
	web := []roles.Scope{{Switch: "dvs", PortGroup: "web"}}
	for name, c := range map[string]struct {
		terms APITerms
		role  string
		has   string
	}{
		"operator":            {APITerms{Role: roles.Operator}, "operator", "operator"},
		"viewer who may look": {APITerms{Role: roles.Viewer, Look: true}, "viewer", "viewer, capture"},
		"admin":               {APITerms{Role: roles.Admin}, "admin", "admin"},
		"a new role":          {APITerms{Role: roles.NetworkAdmin}, "", "network-admin"},
		"of a port group":     {APITerms{Role: roles.Admin, Scopes: web}, "", "admin dvs/web"},
		"of a port group, may look": {APITerms{Role: roles.Viewer, Scopes: web, Look: true}, "",
			"viewer dvs/web, capture dvs/web"},
	} {
		t.Run(name, func(t *testing.T) {
			c.terms.Name, c.terms.Life = "x", day
			_, r, err := NewAPIToken(c.terms, start())
			if err != nil {
				t.Fatal(err)
			}
			doc, err := r.Encode()
			if err != nil {
				t.Fatal(err)
			}
			var old before
			if err := json.Unmarshal(doc, &old); err != nil || old.Role != c.role || old.Look && old.Role == "" {
				t.Errorf("the version before reads %+v, %v of %s", old, err, doc)
			}
			back, err := DecodeAPIRecord(doc)
			if err != nil {
				t.Fatal(err)
			}
			if got := roles.NewAccess(back.Granted()...).Roles(); got != c.has {
				t.Errorf("it allows %s", got)
			}
		})
	}
	// And what that version wrote counts as it did.
	r, err := DecodeAPIRecord([]byte(`{"id":"abcdefgh","digest":"AA==","name":"ann","role":"operator","look":true,` +
		`"made":"2026-01-01T00:00:00Z","expires":"2036-01-01T00:00:00Z","by":"root"}`))
	if err != nil || roles.NewAccess(r.Granted()...).Roles() != "operator, capture" {
		t.Errorf("%+v, %v", r, err)
	}
}
