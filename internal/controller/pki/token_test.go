package pki

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"heddle/internal/identity"
)

// keyNo is the fingerprint of a key.
func keyNo(n byte) identity.Fingerprint { return identity.Fingerprint{n} }

func TestJoinToken_IsGoodForOneHost(t *testing.T) {
	c, other := newCluster(t, start()), newCluster(t, start())
	terms := JoinTerms{Life: time.Hour, By: "root", Labels: LabelBounds{"rack": {"r1", "r2"}, "note": nil}}
	token, r, err := c.NewJoinToken(terms, start())
	c.must(err)
	text, err := json.Marshal(r)
	c.must(err)
	if strings.Contains(string(text), token.Text()[20:40]) || r.By != "root" ||
		!r.Expires.Equal(start().Add(time.Hour)) {
		t.Errorf("%s", text)
	}
	forged := identity.NewJoinToken(token.Root)
	forged.ID = token.ID
	foreign, _, err := other.NewJoinToken(terms, start())
	c.must(err)
	used, err := c.Redeem(r, JoinRequest{token, keyNo(1), map[string]string{"rack": "r2", "note": "x"}}, "h1", start())
	if err != nil || used.Used == nil || used.Used.Host != "h1" || r.Used != nil {
		t.Fatalf("%+v %v", used, err)
	}
	for _, row := range []struct {
		what string
		r    *JoinRecord
		q    JoinRequest
		now  time.Time
		want identity.TokenFault // 0: good
	}{
		{"new", r, JoinRequest{Token: token}, start(), 0},
		{"at its end", r, JoinRequest{Token: token}, start().Add(time.Hour), 0},
		{"expired", r, JoinRequest{Token: token}, start().Add(time.Hour + 1), identity.Expired},
		{"withdrawn", nil, JoinRequest{Token: token}, start(), identity.Unknown},
		{"guessed", r, JoinRequest{Token: forged}, start(), identity.Unknown},
		{"guessed, used", used, JoinRequest{forged, keyNo(1), nil}, start(), identity.Unknown},
		{"of another cluster", nil, JoinRequest{Token: foreign}, start(), identity.WrongCluster},
		{"replayed", used, JoinRequest{token, keyNo(2), nil}, start(), identity.Used},
		{"replayed after its end", used, JoinRequest{token, keyNo(2), nil}, start().Add(day), identity.Used},
		{"the answer was lost", used, JoinRequest{token, keyNo(1), nil}, start(), 0},
		{"the answer was lost long ago", used, JoinRequest{token, keyNo(1), nil}, start().Add(day), identity.Expired},
		{"another rack", r, JoinRequest{token, keyNo(1), map[string]string{"rack": "r3"}}, start(),
			identity.NotAllowed},
		{"another label", r, JoinRequest{token, keyNo(1), map[string]string{"dmz": ""}}, start(), identity.NotAllowed},
	} {
		t.Run(row.what, func(t *testing.T) {
			got, err := c.Redeem(row.r, row.q, "h9", row.now)
			if row.want != 0 {
				if !errors.Is(err, &identity.TokenError{Fault: row.want, ID: row.q.Token.ID}) || got != nil {
					t.Errorf("%+v %v, want %v", got, err, row.want)
				}
				return
			}
			if err != nil || got.Used == nil {
				t.Fatal(got, err)
			}
			if row.r == used && (got != used || got.Used.Host != "h1") || row.r == r && got.Used.Host != "h9" {
				t.Errorf("%+v", got.Used)
			}
		})
	}
	if _, _, err := c.NewJoinToken(JoinTerms{}, start()); err == nil {
		t.Error("a token that never expires")
	}
}
