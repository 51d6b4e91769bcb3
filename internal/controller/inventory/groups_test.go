package inventory

import (
	"strings"
	"testing"

	"heddle/internal/slice"
)

// A host is handed the port groups that its labels let it serve, without what concerns the controllers alone. Its
// labels are those that count at present, also where hosts share what they are handed.
func TestS104_SliceHasThePortGroupsThatTheLabelsAllow(t *testing.T) {
	text := strings.Replace(fleet, "{name: db, vlan: {access: 20}}",
		"{name: db, vlan: {access: 20}, binding: static, ports: {number: 3}, labels: {zone: a}}", 1)
	v := inventoryOf(t, text)
	db := slice.Key{Kind: slice.PortGroup, Name: "dvs/db"}
	for name, c := range map[string]struct {
		host   string
		labels map[string]string
		want   bool
	}{
		"without the label":      {"esx1", map[string]string{"rack": "a"}, false},
		"with another value":     {"esx1", map[string]string{"rack": "a", "zone": "b"}, false},
		"with the label":         {"esx4", map[string]string{"rack": "a", "zone": "a"}, true},
		"an entry without it":    {"esx2", nil, false},
		"an entry that joins so": {"esx2", map[string]string{"zone": "a"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := sliceOf(t, v, c.host, c.labels)
			o, has := s.Get(db)
			if has != c.want || v.Barred(c.host, c.labels)["dvs/db"] == c.want {
				t.Errorf("the host has the port group: %v", has)
			}
			if want := `{"binding":"static","name":"db","vlan":{"access":20}}`; has && string(o.Doc) != want {
				t.Errorf("the host is handed %s, want %s", o.Doc, want)
			}
			if _, err := s.Config(nil); err != nil {
				t.Errorf("a host cannot read it: %v", err)
			}
			if _, has := s.Get(slice.Key{Kind: slice.PortGroup, Name: "dvs/web"}); !has {
				t.Error("it lacks the port group that every host may serve")
			}
		})
	}
	if number, limit := v.StaticGroups()["dvs/db"].Ports.Number, len(v.StaticGroups()); number != 3 || limit != 1 {
		t.Errorf("%d static port groups, %d ports", limit, number)
	}
}
