package rollout_test

import (
	"slices"
	"testing"

	"heddle/internal/controller/inventory"
	"heddle/internal/controller/rollout"
	"heddle/internal/slice"
)

func set(objects ...slice.Object) *slice.Set { return slice.Of(objects...) }

func object(kind slice.Kind, name, doc string) slice.Object {
	return slice.Object{Key: slice.Key{Kind: kind, Name: name}, Doc: []byte(doc)}
}

// What a change concerns is known, and what undoes it makes the definition what it was.
func TestSwitchesOf_IsWhatAChangeConcerns(t *testing.T) {
	base := set(object(slice.Switch, "a", `{"name":"a"}`), object(slice.PortGroup, "a/web", `{}`),
		object(slice.Switch, "b", `{"name":"b"}`), object(slice.StaticPort, "7", `{"switch":"b"}`),
		object(inventory.Template, "t", `{"name":"t","switches":[{"name":"a"},{"name":"b"}]}`),
		object(inventory.Host, "h", `{"name":"h","labels":{"rack":"1"},"switches":[{"name":"b"}]}`))
	put := func(kind slice.Kind, name, doc string) []slice.Object { return []slice.Object{object(kind, name, doc)} }
	both := `"switches":[{"name":"a"},{"name":"b"}]`
	for name, c := range map[string]struct {
		put     []slice.Object
		removed []slice.Key
		want    []string
	}{
		"nothing":       {want: []string{}},
		"a port group":  {put: put(slice.PortGroup, "a/db", `{}`), want: []string{"a"}},
		"a switch":      {removed: []slice.Key{{Kind: slice.Switch, Name: "b"}}, want: []string{"b"}},
		"a static port": {put: put(slice.StaticPort, "7", `{"switch":"a"}`), want: []string{"a", "b"}},
		"an uplink": {put: put(inventory.Template, "t",
			`{"switches":[{"name":"a"},{"name":"b","uplinks":[{"name":"u"}]}]}`), want: []string{"b"}},
		"a host port": {put: put(inventory.Template, "t", `{`+both+`,"hostPorts":[{"switch":"a"}]}`),
			want: []string{"a"}},
		"other hosts": {put: put(inventory.Template, "t", `{"labels":{"x":"y"},`+both+`}`),
			want: []string{"a", "b"}},
		"a host's switch": {removed: []slice.Key{{Kind: inventory.Host, Name: "h"}}, want: []string{rollout.All}},
		"a host's label": {put: put(inventory.Host, "h", `{"labels":{"rack":"2"},"switches":[{"name":"b"}]}`),
			want: []string{rollout.All}},
		"something new": {put: put("gateway", "g", `{}`), want: []string{rollout.All}},
	} {
		t.Run(name, func(t *testing.T) {
			after := base.Clone()
			after.Apply(slice.Change{Put: c.put, Removed: c.removed})
			if got := rollout.SwitchesOf(base, after); !slices.Equal(got, c.want) {
				t.Errorf("it concerns %v, want %v", got, c.want)
			}
			if after.Apply(rollout.Undo(base, after)); after.Hash() != base.Hash() {
				t.Error("it was undone, and the definition is another one than before")
			}
		})
	}
	a, all := rollout.Rollout{Switches: []string{"a"}}, rollout.Rollout{Switches: []string{rollout.All}}
	if !a.Touches([]string{"b", "a"}) || a.Touches([]string{"b"}) || !a.Touches([]string{rollout.All}) ||
		!all.Touches([]string{"b"}) || all.Touches(nil) {
		t.Error("whether two changes concern the same switch is not told")
	}
}
