package pki

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"heddle/internal/platform/access/roles"
)

// The records of tokens survive a controller that knows less than the one which wrote them.
func TestRecords_KeepWhatTheyDoNotKnow(t *testing.T) {
	c := newCluster(t, start())
	token, join, err := c.NewJoinToken(JoinTerms{Life: time.Hour, By: "anna", Labels: LabelBounds{"rack": {"r1"}}},
		start())
	c.must(err)
	_, api, err := NewAPIToken(APITerms{Name: "ci", Role: roles.Operator, Look: true, Life: day, By: "anna"},
		start())
	c.must(err)
	add := func(text []byte, err error) []byte {
		t.Helper()
		c.must(err)
		return []byte(strings.Replace(string(text), "{", `{"unknown":1,"more":{"x":[2]},`, 1))
	}
	gotJoin, err := DecodeJoinRecord(add(join.Encode()))
	c.must(err)
	used, err := c.Redeem(gotJoin, JoinRequest{Token: token, Key: keyNo(1)}, "h1", start())
	c.must(err)
	gotAPI, err := DecodeAPIRecord(add(api.Encode()))
	c.must(err)
	for what, r := range map[string]interface{ Encode() ([]byte, error) }{"join": gotJoin, "used": used,
		"API": gotAPI} {
		t.Run(what, func(t *testing.T) {
			text, err := r.Encode()
			c.must(err)
			var all map[string]json.RawMessage
			if err := json.Unmarshal(text, &all); err != nil || string(all["more"]) != `{"x":[2]}` ||
				string(all["unknown"]) != "1" || string(all["id"]) == "" {
				t.Errorf("%s %v", text, err)
			}
		})
	}
	gotJoin.unknown, gotAPI.unknown = nil, nil
	if !reflect.DeepEqual(gotJoin, join) || !reflect.DeepEqual(gotAPI, api) {
		t.Errorf("%+v\n%+v\n%+v\n%+v", gotJoin, join, gotAPI, api)
	}
	for _, bad := range []string{"", "[]", `{"expires":"soon"}`, `{"role":"root"}`} {
		_, err1 := DecodeJoinRecord([]byte(bad))
		_, err2 := DecodeAPIRecord([]byte(bad))
		if err1 == nil && err2 == nil {
			t.Errorf("%s is read", bad)
		}
	}
}
