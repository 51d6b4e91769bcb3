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
	used, err := c.Redeem(r, JoinRequest{Token: token, Key: keyNo(1),
		Labels: map[string]string{"rack": "r2", "note": "x"}}, "h1", start())
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
		{"guessed, used", used, JoinRequest{Token: forged, Key: keyNo(1)}, start(), identity.Unknown},
		{"of another cluster", nil, JoinRequest{Token: foreign}, start(), identity.WrongCluster},
		{"replayed", used, JoinRequest{Token: token, Key: keyNo(2)}, start(), identity.Used},
		{"replayed after its end", used, JoinRequest{Token: token, Key: keyNo(2)}, start().Add(day), identity.Used},
		{"the answer was lost", used, JoinRequest{Token: token, Key: keyNo(1)}, start(), 0},
		{"the answer was lost long ago", used, JoinRequest{Token: token, Key: keyNo(1)}, start().Add(day),
			identity.Expired},
		{"another rack", r, JoinRequest{Token: token, Key: keyNo(1), Labels: map[string]string{"rack": "r3"}}, start(),
			identity.NotAllowed},
		{"another label", r, JoinRequest{Token: token, Key: keyNo(1), Labels: map[string]string{"dmz": ""}}, start(),
			identity.NotAllowed},
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

// A token takes the place of the host that it names, when it is asked to, and of no other one.
func TestS123_AJoinTokenNamesWhatItReplaces(t *testing.T) {
	c := newCluster(t, start())
	plain, r, err := c.NewJoinToken(JoinTerms{Life: time.Hour, By: "root"}, start())
	c.must(err)
	taking, replaces, err := c.NewJoinToken(JoinTerms{Life: time.Hour, By: "root", Replaces: "h1"}, start())
	c.must(err)
	for _, row := range []struct {
		what, host string
		r          *JoinRecord
		q          JoinRequest
		want       string // in the error; "" for none
	}{
		{"a host beside the others", "h1", r, JoinRequest{Token: plain}, ""},
		{"a place that it does not name", "h1", r, JoinRequest{Token: plain, Replace: true},
			"it takes no host's place"},
		{"the place that it names", "h1", replaces, JoinRequest{Token: taking, Replace: true}, ""},
		{"not asked to", "h1", replaces, JoinRequest{Token: taking}, "say --replace"},
		{"another place", "h2", replaces, JoinRequest{Token: taking, Replace: true}, "of host h1, and of no other one"},
		{"another name", "h2", replaces, JoinRequest{Token: taking}, "of host h1, and of no other one"},
	} {
		t.Run(row.what, func(t *testing.T) {
			_, err := c.Redeem(row.r, row.q, row.host, start())
			if row.want == "" && err != nil || row.want != "" && (!errors.Is(err,
				&identity.TokenError{Fault: identity.NotAllowed}) || !strings.Contains(err.Error(), row.want)) {
				t.Error(err)
			}
		})
	}
}
