package conflict

import (
	"maps"
	"slices"
	"testing"
)

func TestHighest(t *testing.T) {
	for _, c := range []struct {
		generations []uint64
		want        uint64 // 0 for none
	}{{nil, 0}, {[]uint64{3}, 3}, {[]uint64{1, 3, 2}, 3}, {[]uint64{3, 3}, 0}, {[]uint64{3, 3, 4}, 4},
		{[]uint64{4, 3, 3}, 4}, {[]uint64{3, 4, 4}, 0}} {
		var list []Instance
		for _, g := range c.generations {
			list = append(list, Instance{Generation: g})
		}
		got := uint64(0)
		if top := Highest(list); top != nil {
			got = top.Generation
		}
		if got != c.want {
			t.Errorf("of %v the highest is %d, want %d", c.generations, got, c.want)
		}
	}
}

// Hosts clash once both have said, knowing of the other as it is, that the guest runs there.
func TestClashing(t *testing.T) {
	a := func(sure map[string]uint64) Instance { return Instance{Host: "a", Generation: 1, Sure: sure} }
	b := func(sure map[string]uint64) Instance { return Instance{Host: "b", Generation: 2, Sure: sure} }
	ab, ba := map[string]uint64{"b": 2}, map[string]uint64{"a": 1}
	c := Instance{Host: "c", Generation: 3}
	for name, w := range map[string]struct {
		list []Instance
		want []string
	}{
		"neither was asked":     {[]Instance{a(nil), b(nil)}, nil},
		"one has answered":      {[]Instance{a(ab), b(nil)}, nil},
		"both have":             {[]Instance{a(ab), b(ba), c}, []string{"a", "b"}},
		"one has begun anew":    {[]Instance{a(map[string]uint64{"b": 1}), b(ba)}, nil},
		"one is not running":    {[]Instance{a(ab)}, nil},
		"the answers of others": {[]Instance{a(map[string]uint64{"c": 3}), b(map[string]uint64{"c": 3}), c}, nil},
	} {
		if got := slices.Sorted(maps.Keys(Clashing(w.list))); !slices.Equal(got, w.want) {
			t.Errorf("%s: %v clash, want %v", name, got, w.want)
		}
	}
}

// Silence ends no conflict; a word does.
func TestS78_AConflictEndsByAWordAndNotBySilence(t *testing.T) {
	words := map[string]Word{"runs": Runs, "stopped": Stopped, "silent": Nothing, "clashes": Runs}
	word := func(host string) Word { return words[host] }
	for name, c := range map[string]struct {
		clash          []string
		before         []string
		rivals, doubts []string
	}{
		"nothing":                 {nil, nil, nil, nil},
		"a clash":                 {[]string{"own", "clashes"}, nil, []string{"clashes"}, nil},
		"a clash of others":       {[]string{"clashes", "runs"}, nil, nil, nil},
		"a silent one":            {nil, []string{"silent"}, []string{"silent"}, []string{"silent"}},
		"one that is to be asked": {nil, []string{"runs"}, []string{"runs"}, nil},
		"one that has stopped":    {nil, []string{"stopped"}, nil, nil},
		"a third one beside two": {[]string{"own", "clashes"}, []string{"silent", "clashes", "stopped"},
			[]string{"clashes", "silent"}, []string{"silent"}},
		"a clash that is known again": {[]string{"own", "silent"}, []string{"silent"}, []string{"silent"}, nil},
	} {
		clash := map[string]bool{}
		for _, id := range c.clash {
			clash[id] = true
		}
		rivals, doubts := Rivals("own", clash, c.before, word)
		if !slices.Equal(rivals, c.rivals) || !slices.Equal(doubts, c.doubts) {
			t.Errorf("%s: rivals %v, doubts %v; want %v, %v", name, rivals, doubts, c.rivals, c.doubts)
		}
	}
}
