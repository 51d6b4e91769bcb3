package loops

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"heddle/internal/plan"
)

// end parses "2:s1", "2:s1.10", an uplink "u7:s1.10", a port without loop detection "f3:s1".
func end(text string) End {
	id, seg, _ := strings.Cut(text, ":")
	e := End{Uplink: strings.HasPrefix(id, "u"), Free: strings.HasPrefix(id, "f")}
	if _, err := fmt.Sscanf(strings.TrimLeft(id, "uf"), "%d", &e.Number); err != nil {
		panic(err)
	}
	sw, vlan, tagged := strings.Cut(seg, ".")
	e.Segment.Switch = sw
	if tagged {
		if _, err := fmt.Sscanf(vlan, "%d", &e.Segment.VLAN); err != nil {
			panic(err)
		}
	}
	e.ID = plan.PortID{Switch: sw, Name: id}
	return e
}

// ways parses "1:s>2:s", and both directions of "1:s=2:s".
func ways(list ...string) (all []Way) {
	for _, text := range list {
		if a, b, ok := strings.Cut(text, "="); ok {
			all = append(all, Way{end(a), end(b)}, Way{end(b), end(a)})
			continue
		}
		a, b, _ := strings.Cut(text, ">")
		all = append(all, Way{end(a), end(b)})
	}
	return all
}

func TestS110_WhatIsALoopAndWhichPortOpensIt(t *testing.T) {
	for _, c := range []struct {
		what string
		ways []string
		want string // ports to block
	}{
		{"nothing", nil, ""},
		{"a veth pair between two switches", []string{"1:a=2:b"}, ""},
		{"two of them", []string{"1:a=2:b", "3:a=4:b"}, "4"},
		{"in two VLANs", []string{"1:a.10=2:b.10", "3:a.20=4:b.20"}, ""},
		{"a guest that bridges two ports of a segment", []string{"1:a=2:a"}, "2"},
		{"one that sends one way", []string{"1:a>2:a"}, "2"},
		{"the other way", []string{"2:a>1:a"}, "1"},
		{"a guest that bridges two VLANs", []string{"1:a.10=2:a.20"}, ""},
		{"two guests that do", []string{"1:a.10=2:a.20", "3:a.10=4:a.20"}, "4"},
		{"two of which each sends one way", []string{"1:a.10>2:a.20", "3:a.20>4:a.10"}, "4"},
		{"two that both send one way", []string{"1:a.10>2:a.20", "3:a.10>4:a.20"}, ""},
		{"three switches in a ring", []string{"1:a=2:b", "3:b=4:c", "5:c=6:a"}, "6"},
		{"three in a row", []string{"1:a=2:b", "3:b=4:c"}, ""},
		{"a guest that sends back what it gets", []string{"1:a>1:a"}, ""},
		{"two of them", []string{"1:a>1:a", "2:a>2:a"}, "2"},
		{"a team of two uplinks to another switch", []string{"u1:a=2:b", "u3:a=4:b"}, ""},
		{"uplinks of one switch that hear each other", []string{"u1:a=u2:a"}, ""},
		{"an uplink and a port to one other switch", []string{"u1:a=2:b", "3:a=4:b"}, "4"},
		{"a port that leads outside, where the uplink does", []string{"1:a=u2:a"}, "1"},
		{"only out by the port and in by the uplink", []string{"1:a>u2:a"}, "1"},
		{"two switches with uplinks on one network, and a veth pair", []string{"u1:a=u2:b", "3:a=4:b"}, "4"},
		{"a port without loop detection is spared", []string{"1:a=f2:a"}, "1"},
		{"both are", []string{"f1:a=f2:a"}, ""},
		{"two loops", []string{"1:a=2:a", "3:b=4:b"}, "2 4"},
		{"three ports of one guest", []string{"1:a=2:a", "1:a=3:a", "2:a=3:a"}, "2 3"},
	} {
		t.Run(c.what, func(t *testing.T) {
			var got []string
			for _, l := range Find(ways(c.ways...)) {
				if l.Port != (plan.PortID{}) {
					got = append(got, l.Port.Name)
				}
			}
			slices.Sort(got)
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s: %v are blocked, want %q", c.what, got, c.want)
			}
		})
	}
}

func TestS110_ALoopSaysHowItGoes(t *testing.T) {
	l := Find(ways("1:a=2:b", "3:a=4:b"))[0]
	if want := "frames that leave by port 1 come in by port 2 in the untagged VLAN of switch b, " +
		"frames that leave by port 4 come in by port 3 in the untagged VLAN of switch a; it begins in the " +
		"untagged VLAN of switch a"; l.String() != want {
		t.Errorf("%s", l)
	}
}

// Whatever the paths are: with the ports blocked no frame loops, uplinks and ports without loop detection are never
// blocked, and the order in which the paths were found changes nothing.
func TestS110_WhatIsBlockedLeavesNoLoop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.Custom(func(t *rapid.T) End {
			n := rapid.IntRange(1, 9).Draw(t, "port")
			e := End{Number: uint32(n), Uplink: n == 8, Free: n == 7, ID: plan.PortID{Switch: "s", Name: fmt.Sprint(n)}}
			e.Segment = Segment{Switch: "s", VLAN: uint16(rapid.IntRange(0, 2).Draw(t, "vlan"))}
			return e
		})
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Way { return Way{one.Draw(t, "out"), one.Draw(t, "in")} }),
			0, 12).Draw(t, "ways")
		found := Find(all)
		left := slices.Clone(all)
		for _, l := range found {
			if l.Port.Name == "7" || l.Port.Name == "8" {
				t.Fatalf("%v is blocked", l.Port)
			}
			if l.Port != (plan.PortID{}) {
				left = slices.DeleteFunc(left, func(w Way) bool { return w.uses(l.Port) })
			}
		}
		left = slices.DeleteFunc(left, func(w Way) bool {
			return w.Out.Number >= 7 && w.Out.Number < 9 &&
				w.In.Number >= 7 && w.In.Number < 9
		})
		for _, l := range Find(left) {
			if l.Port != (plan.PortID{}) {
				t.Fatalf("%v is left: %v", l, l.Port)
			}
		}
		shuffled := rapid.Permutation(all).Draw(t, "order")
		if again := Find(shuffled); fmt.Sprint(again) != fmt.Sprint(found) {
			t.Fatalf("%v, in another order %v", found, again)
		}
	})
}
