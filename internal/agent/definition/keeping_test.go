package definition

import (
	"slices"
	"strings"
	"testing"

	"heddle/internal/agent/state"
	"heddle/internal/slice"
)

// A kept port group goes with the newer definition as far as it can: a teaming that names uplinks which are gone is
// left out, and said so. Anything else is refused with the reason, and so is what is wrong with the definition alone.
func TestS103_AKeptPortGroupHasToGoWithTheDefinition(t *testing.T) {
	object := func(kind slice.Kind, name, doc string) slice.Object {
		return slice.Object{Key: slice.Key{Kind: kind, Name: name}, Doc: []byte(doc)}
	}
	sw := object(slice.Switch, "dvs", `{"name":"dvs","uplinks":[{"name":"uplink1","device":"eno1"}]}`)
	for _, c := range []struct {
		what, kept string
		next       slice.Object
		without    string
		refused    string
	}{
		{"it fits", `{"name":"web","vlan":{"access":10}}`, sw, "", ""},
		{"its uplink is gone", `{"name":"web","vlan":{"access":10},"teaming":{"active":["uplink2"]}}`, sw,
			"its teaming was left out: uplink2", ""},
		{"another thing", `{"name":"web","later":1}`, sw, "", "does not go with: port group dvs/web"},
		{"the definition itself", `{"name":"web"}`, object(slice.Switch, "dvs", `{"name":"dvs","mtu":-1}`), "", "mtu"},
	} {
		t.Run(c.what, func(t *testing.T) {
			web := object(slice.PortGroup, "dvs/web", c.kept)
			next := &state.Slice{Objects: []slice.Object{c.next}}
			h, err := Read(next, []slice.Object{web}, nil)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("it is not refused as it should be: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			groups := h.Config.Switches[0].PortGroups
			whole := slices.Equal(h.beside[0].Doc, web.Doc)
			if len(groups) != 1 || groups[0].Name != "web" || whole != (c.without == "") {
				t.Errorf("the host has %+v, kept as %s", groups, h.beside[0].Doc)
			}
			if got := h.without[web.Key]; !strings.HasPrefix(got, c.without) || c.without == "" && got != "" {
				t.Errorf("left out is %q, want %q", got, c.without)
			}
		})
	}
}
