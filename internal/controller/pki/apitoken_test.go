package pki

import (
	"errors"
	"strings"
	"testing"
	"time"

	"heddle/internal/identity"
)

func TestAPITokens(t *testing.T) {
	token, r, err := NewAPIToken(APITerms{Name: "ci", Role: identity.Operator, Life: 30 * day, By: "anna"}, start())
	if err != nil {
		t.Fatal(err)
	}
	guessed := identity.NewAPIToken()
	guessed.ID = token.ID
	other, r2, err := NewAPIToken(APITerms{Name: "x", Role: identity.Admin, Life: day, By: "anna"}, start())
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
	denied := &identity.TokenError{Fault: identity.NotAllowed}
	if r.May(identity.Viewer) != nil || r.May(identity.Operator) != nil || !errors.Is(r.May(identity.Admin), denied) {
		t.Error("an operator's token")
	}
	if !errors.Is(r.MayLook(), denied) || r2.MayLook() != nil || (&APIRecord{Role: identity.Viewer,
		Look: true}).MayLook() != nil {
		t.Error("who may capture")
	}
	if err := r2.Check(other, start()); err != nil {
		t.Error(err)
	}
	for i, bad := range []APITerms{{Name: "x", Role: identity.Admin}, {Role: identity.Admin, Life: day},
		{Name: "x", Life: day}, {Name: strings.Repeat("x", 65), Role: identity.Admin, Life: day}} {
		if _, _, err := NewAPIToken(bad, start()); err == nil {
			t.Error(i, "is made")
		}
	}
}
