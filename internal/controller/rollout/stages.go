package rollout

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Stage is one of a rollout, as it was asked for. One of its fields is set.
type Stage struct {
	// Hosts is how many have the change after the stage, Percent which part of all.
	Hosts   int     `json:"hosts,omitempty"`
	Percent float64 `json:"percent,omitempty"`
	// Label and Value are those of the hosts that the stage adds.
	Label string `json:"label,omitempty"`
	Value string `json:"value,omitempty"`
}

// String is the stage as it was asked for.
func (s Stage) String() string {
	switch {
	case s.Label != "":
		return s.Label + "=" + s.Value
	case s.Percent > 0:
		return strconv.FormatFloat(s.Percent, 'f', -1, 64) + "%"
	}
	return strconv.Itoa(s.Hosts)
}

// mostStages bounds a rollout.
const mostStages = 100

// Parse reads stages as people write them: numbers of hosts, parts of all, or a label with its value, such as
// "1,10%,100%" or "env=test,50%,100%". The last one has all hosts.
func Parse(text string) ([]Stage, error) {
	var list []Stage
	for _, word := range strings.Split(text, ",") {
		s, err := parseOne(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		if n := len(list); n > 0 && (s.Percent > 0 && s.Percent <= list[n-1].Percent ||
			s.Hosts > 0 && s.Hosts <= list[n-1].Hosts) {
			return nil, fmt.Errorf("stages %q: each has more hosts than the one before", text)
		}
		list = append(list, s)
	}
	switch last := list[len(list)-1]; {
	case last.Percent != 100:
		return nil, fmt.Errorf("stages %q: the last one is 100%%, so that all hosts have the change in the end", text)
	case len(list) > mostStages:
		return nil, fmt.Errorf("%d stages: at most %d make sense", len(list), mostStages)
	}
	return list, nil
}

func parseOne(word string) (s Stage, err error) {
	if label, value, ok := strings.Cut(word, "="); ok {
		if label == "" || value == "" {
			return s, fmt.Errorf("stage %q: give a label and its value, such as env=test", word)
		}
		return Stage{Label: label, Value: value}, nil
	}
	if part, ok := strings.CutSuffix(word, "%"); ok {
		s.Percent, err = strconv.ParseFloat(part, 64)
		if err != nil || !(s.Percent > 0 && s.Percent <= 100) {
			return s, fmt.Errorf("stage %q: give a part of the hosts, above 0%% and up to 100%%", word)
		}
		return s, nil
	}
	if s.Hosts, err = strconv.Atoi(word); err != nil || s.Hosts < 1 {
		return s, fmt.Errorf("stage %q: give a number of hosts (1), a part of them (10%%) or a label (env=test)", word)
	}
	return s, nil
}

// Member is a host that a rollout may concern.
type Member struct {
	ID     string
	Labels map[string]string
}

// Order is which hosts come when. It is made once and kept with the rollout: a host has its stage by it for good, also
// one that joins later, and one that comes back.
type Order struct {
	// Seed is random, so that it is not always the same hosts that come first.
	Seed string `json:"seed"`
	// By is the label whose hosts come together; "" for each host on its own.
	By     string  `json:"by,omitempty"`
	Stages []Stage `json:"stages"`
	// Until are the places up to which each stage goes, in the order by lot; 0 for a stage by a label.
	Until []uint64 `json:"until"`
}

// NewOrder makes the order of hosts.
func NewOrder(seed, by string, stages []Stage, members []Member) Order {
	o := Order{Seed: seed, By: by, Stages: stages, Until: make([]uint64, len(stages))}
	groups := map[uint64]int{} // hosts by place
	for _, m := range members {
		groups[o.place(m)]++
	}
	places := slices.Sorted(maps.Keys(groups))
	for i, s := range stages {
		switch {
		case s.Percent == 100:
			o.Until[i] = ^uint64(0)
		case s.Label == "":
			o.Until[i] = until(places, groups, s, len(members), by != "")
		}
	}
	return o
}

// until is the last place of a stage. Where hosts come by groups, a number is one of groups, and a part is reached with
// the group that makes it full.
func until(places []uint64, groups map[uint64]int, s Stage, all int, grouped bool) (last uint64) {
	want := s.Hosts
	if s.Percent > 0 {
		want = max(1, int(float64(all)*s.Percent/100))
	}
	had := 0
	for _, p := range places {
		if had >= want {
			break
		}
		last = p
		if grouped && s.Hosts > 0 {
			had++
		} else {
			had += groups[p]
		}
	}
	return last
}

// place is where a host stands in the order by lot, from 1.
func (o Order) place(m Member) uint64 {
	unit := "host " + m.ID
	if o.By != "" && m.Labels[o.By] != "" {
		unit = "group " + m.Labels[o.By]
	}
	sum := sha256.Sum256([]byte(o.Seed + "\x00" + unit))
	return max(1, binary.BigEndian.Uint64(sum[:]))
}

// StageOf is the stage with which a host gets the change, from 0.
func (o Order) StageOf(m Member) int {
	place := o.place(m)
	for i, s := range o.Stages {
		if s.Label != "" && m.Labels[s.Label] == s.Value || place <= o.Until[i] {
			return i
		}
	}
	return len(o.Stages) - 1
}

// Has reports whether a host has the change when that many stages have begun.
func (o Order) Has(m Member, begun int) bool { return o.StageOf(m) < begun }

// Part sorts hosts into those that have the change when that many stages have begun, and the others.
func (o Order) Part(members []Member, begun int) (changed, others []Member) {
	for _, m := range members {
		if o.Has(m, begun) {
			changed = append(changed, m)
		} else {
			others = append(others, m)
		}
	}
	byID := func(a, b Member) int { return cmp.Compare(a.ID, b.ID) }
	slices.SortFunc(changed, byID)
	slices.SortFunc(others, byID)
	return changed, others
}
