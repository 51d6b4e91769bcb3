package fields

import (
	"slices"
	"strings"
	"testing"

	"heddle/internal/plan"
	"heddle/internal/slice"
)

func object(kind slice.Kind, name, doc string) slice.Object {
	return slice.Object{Key: slice.Key{Kind: kind, Name: name}, Doc: []byte(doc)}
}

// Every policy field is named, whatever is added to the table, and what the first version knew is known for ever.
func TestKnown_HasEveryFieldThatThereIs(t *testing.T) {
	for _, f := range plan.Fields() {
		if p := "policy." + f.Path; !Known().has[p] {
			t.Errorf("%s is not named", p)
		}
	}
	for _, field := range []string{"switch.mtu", "switch.uplinks.vlans", "switch.lags.uplinks",
		"portGroup.overrides.vlan", "port.mac", "policy.vlan.trunk", "policy.teaming.policy=ip-hash", "portGroup",
		"switch.uplinks"} {
		if !Known().has[field] {
			t.Errorf("%s is not named", field)
		}
	}
	for line := range strings.Lines(First().Text()) {
		if line = strings.TrimSpace(line); !Known().has[line] {
			t.Errorf("%s was known to the version before, and is not any more", line)
		}
	}
	if !Controller().has["template.labels"] || Known().has["template.labels"] {
		t.Error("a controller knows templates, and a host does not")
	}
}

// old is a program that knows little.
var old = Parse("switch.name\nswitch.uplinks.name\nportGroup.name\npolicy.vlan.access\npolicy.security.macChanges\n" +
	"policy.security.macChanges=accept\npolicy.teaming.active")

func TestFit_LeavesOutAndNamesWhatIsNotKnown(t *testing.T) {
	for _, c := range []struct {
		what     string
		is, want slice.Object
		lacks    []string
		security bool
	}{
		{"all is known", object("portGroup", "d/w", `{"name": "w", "vlan": {"access": 10}}`),
			object("portGroup", "d/w", `{"name": "w", "vlan": {"access": 10}}`), nil, false},
		{"a field within a mapping", object("portGroup", "d/w",
			`{"name":"w","security":{"guard":true,"macChanges":"accept"}}`),
			object("portGroup", "d/w", `{"name":"w","security":{"macChanges":"accept"}}`),
			[]string{"portGroup d/w: security.guard"}, true},
		{"a whole mapping", object("portGroup", "d/w", `{"name":"w","qos":{"class":3}}`),
			object("portGroup", "d/w", `{"name":"w"}`), []string{"portGroup d/w: qos"}, false},
		{"a word", object("portGroup", "d/w", `{"name":"w","security":{"macChanges":"ask"}}`),
			object("portGroup", "d/w", `{"name":"w","security":{}}`),
			[]string{"portGroup d/w: security.macChanges=ask"}, true},
		{"the defaults of a switch", object("switch", "d", `{"defaults":{"security":{"guard":true}},"name":"d"}`),
			object("switch", "d", `{"defaults":{"security":{}},"name":"d"}`),
			[]string{"switch d: defaults.security.guard"}, true},
		{"a field of an uplink", object("switch", "d",
			`{"name":"d","uplinks":[{"name":"u1","speed":"10g"},{"name":"u2"}]}`),
			object("switch", "d", `{"name":"d","uplinks":[{"name":"u1"},{"name":"u2"}]}`),
			[]string{"switch d: uplinks[u1].speed"}, false},
		{"a list of words that is one value", object("portGroup", "d/w", `{"name":"w","teaming":{"active":["u1"]}}`),
			object("portGroup", "d/w", `{"name":"w","teaming":{"active":["u1"]}}`), nil, false},
		{"no mapping at all", object("switch", "d", `7`), object("switch", "d", `7`), nil, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			got, lacks := old.Fit(slice.Of(c.is))
			var lines []string
			for _, l := range lacks {
				lines = append(lines, l.String())
				if l.Security() != c.security {
					t.Errorf("%s: security is %v", l, l.Security())
				}
			}
			if o, _ := got.Get(c.is.Key); string(o.Doc) != string(c.want.Doc) || !slices.Equal(lines, c.lacks) {
				t.Errorf("%s, lacking %q", o.Doc, lines)
			}
		})
	}
	got, lacks := old.Fit(slice.Of(object("firewall", "f", `{}`)))
	if got.Len() != 0 || len(lacks) != 1 || lacks[0].String() != "firewall f" {
		t.Errorf("an object of a kind that is not known: %d, %v", got.Len(), lacks)
	}
}

func TestKeep_KeepsWhatAnOlderProgramCannotWrite(t *testing.T) {
	was := object("switch", "d", `{"name":"d","mtu":1,`+
		`"uplinks":[{"name":"u1","speed":"10g"},{"name":"u2","speed":"1g"}],`+
		`"defaults":{"security":{"guard":true,"macChanges":"accept"}},"story":{"a":1}}`)
	next := object("switch", "d",
		`{"name":"d","uplinks":[{"name":"u1","vlans":["1"]}],"defaults":{"vlan":{"access":7}}}`)
	knows := Parse(old.Text() + "\nswitch.mtu\nswitch.uplinks.vlans")
	doc, kept := knows.Keep(was, next)
	want := `{"defaults":{"security":{"guard":true},"vlan":{"access":7}},"name":"d","story":{"a":1},` +
		`"uplinks":[{"name":"u1","speed":"10g","vlans":["1"]}]}`
	if string(doc) != want || strings.Join(kept, " ") != "defaults.security.guard story uplinks[u1].speed" {
		t.Errorf("%s\n%q", doc, kept)
	}
	if doc, kept := Known().Keep(next, next); string(doc) != string(next.Doc) || kept != nil {
		t.Errorf("%s, %q", doc, kept)
	}
}

func TestDiff_SaysWhichFieldsChange(t *testing.T) {
	for _, c := range []struct{ what, was, next, want string }{
		{"nothing", `{"a":1}`, `{"a":1}`, ""},
		{"a value", `{"vlan":{"access":10}}`, `{"vlan":{"access":30}}`, "vlan.access 10 30"},
		{"a field more, and one less", `{"a":{"b":1}}`, `{"c":"x"}`, `a.b 1 ; c  "x"`},
		{"in a list of names", `{"u":[{"name":"x","v":1},{"name":"y"}]}`, `{"u":[{"name":"x","v":2}]}`,
			`u[x].v 1 2; u[y].name "y" `},
		{"a list of words", `{"u":["a"]}`, `{"u":["a","b"]}`, `u ["a"] ["a","b"]`},
		{"another form", `{"u":["a"]}`, `{"u":{"a":1}}`, `u ["a"] {"a":1}`},
	} {
		t.Run(c.what, func(t *testing.T) {
			var lines []string
			for _, d := range Diff([]byte(c.was), []byte(c.next)) {
				lines = append(lines, d.Field+" "+d.Old+" "+d.New)
			}
			if got := strings.Join(lines, "; "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
