package alike_test

import (
	"testing"

	"heddle/internal/fabric/alike"
)

type pair struct{ from, to, by string }

func traits() []alike.Trait[pair] {
	return []alike.Trait[pair]{
		{What: "they come from", Of: func(p pair) string { return p.from }},
		{What: "they go to", Of: func(p pair) string { return p.to }},
		{What: "they leave by", Of: func(p pair) string { return p.by }},
	}
}

// What some share is named only where fewer than half of the others share it.
func TestOf_NamesWhatTheOthersLack(t *testing.T) {
	for _, c := range []struct {
		name       string
		some, rest []pair
		want       string
	}{
		{"a sender", []pair{{"a", "b", "x"}, {"a", "c", "x"}}, []pair{{"b", "a", "x"}, {"c", "a", "x"}, {"b", "c",
			"x"}},
			"they come from a"},
		{"the first of two that say the same", []pair{{"a", "b", "x"}}, []pair{{"b", "c", "y"}, {"c", "d", "y"}},
			"they come from a"},
		{"the rarer of two", []pair{{"a", "b", "x"}}, []pair{{"a", "c", "y"}, {"c", "d", "y"}, {"d", "a", "y"}},
			"they go to b"},
		{"half of the others have it too", []pair{{"a", "b", "x"}}, []pair{{"a", "b", "x"}, {"c", "d", "y"}}, ""},
		{"nothing in common", []pair{{"a", "b", "x"}, {"b", "c", "y"}}, []pair{{"c", "d", "z"}, {"d", "e", "z"}}, ""},
		{"a value that is unknown", []pair{{"", "b", ""}, {"", "c", ""}}, []pair{{"d", "e", "z"}}, ""},
		{"none", nil, []pair{{"c", "d", "z"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := alike.Of(c.some, c.rest, traits()); got != c.want {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}
