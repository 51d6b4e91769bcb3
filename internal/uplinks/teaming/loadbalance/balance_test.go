package loadbalance

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const gigabit = 1e9

// scene is a switch under a constant load: what every port sends and receives, whichever uplink it uses.
type scene struct {
	speed map[string]float64
	ports []Port
	other map[string]Rate // traffic of an uplink from ports without load-based teaming
}

// uplinks returns what a window would measure.
func (s *scene) uplinks() (list []Uplink) {
	for name, speed := range s.speed {
		u := Uplink{Name: name, Speed: speed, In: s.other[name].In, Out: s.other[name].Out}
		for _, p := range s.ports {
			if p.Uplink == name {
				u = with(u, p)
			}
		}
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b Uplink) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// window lets a window pass and makes the moves.
func (s *scene) window() []Move {
	moves := Balance(s.uplinks(), s.ports)
	for _, m := range moves {
		for i := range s.ports {
			if s.ports[i].Name == m.Port {
				s.ports[i].Uplink = m.To
			}
		}
	}
	return moves
}

// ports parses "name uplink Mb/s out": all ports may use a, b and c.
func ports(list ...string) (out []Port) {
	for _, text := range list {
		p := Port{Choices: []string{"a", "b", "c"}}
		var megabits float64
		if _, err := fmt.Sscan(text, &p.Name, &p.Uplink, &megabits); err != nil {
			panic(err)
		}
		p.Out = megabits * 1e6
		out = append(out, p)
	}
	return out
}

func TestS47_TheBusiestPortOfALoadedUplinkMovesToTheLeastLoaded(t *testing.T) {
	speeds := map[string]float64{"a": gigabit, "b": gigabit, "c": gigabit}
	for _, c := range []struct {
		name  string
		ports []Port
		speed map[string]float64
		want  []string // "port from to" of the windows to come
	}{
		{"the busiest to the least loaded", ports("p1 a 300", "p2 a 500", "p3 b 200", "p4 c 100"), speeds,
			[]string{"p2 a c"}},
		{"one for each loaded uplink", ports("p1 a 400", "p2 a 400", "p3 b 450", "p4 b 450"), speeds,
			[]string{"p3 b c"}},
		{"window by window", ports("p1 a 300", "p2 a 310", "p3 a 320", "p4 a 330"), speeds,
			[]string{"p4 a b", "p3 a c"}},
		{"the threshold itself is not above it", ports("p1 a 375", "p2 a 375"), speeds, nil},
		{"one port that fills an uplink stays", ports("p1 a 1000"), speeds, nil},
		{"what is busiest would not help: the next", ports("p1 a 900", "p2 a 40"), speeds, []string{"p2 a b"}},
		{"all are loaded: only for a clear gain", ports("p1 a 500", "p2 a 490", "p3 b 800", "p4 c 800"), speeds, nil},
		{"a clear gain above the threshold", ports("p1 a 500", "p2 a 100", "p3 a 380", "p4 b 700", "p5 c 700"), speeds,
			[]string{"p2 a b"}},
		{"speeds differ", ports("p1 a 500", "p2 a 400"), map[string]float64{"a": gigabit, "b": gigabit / 10,
			"c": 10 * gigabit}, []string{"p1 a c"}},
		{"no other choice", []Port{{Name: "p1", Uplink: "a", Choices: []string{"a"}, Out: 5e8},
			{Name: "p2", Uplink: "a", Choices: nil, Out: 4e8}}, speeds, nil},
		{"received traffic counts as well", []Port{{Name: "p1", Uplink: "a", Choices: []string{"a", "b"}, In: 5e8},
			{Name: "p2", Uplink: "a", Choices: []string{"b"}, In: 4e8}}, speeds, []string{"p1 a b"}},
		{"a port that is busy the other way is of no help",
			[]Port{{Name: "p1", Uplink: "a", Choices: []string{"b"}, In: 7e8},
				{Name: "p2", Uplink: "a", Choices: []string{"a"}, Out: 8e8}}, speeds, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &scene{speed: c.speed, ports: c.ports}
			var got []string
			for range 10 {
				for _, m := range s.window() {
					got = append(got, fmt.Sprint(m.Port, " ", m.From, " ", m.To))
				}
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
		})
	}
}

// draw returns a random switch under a constant load.
func draw(t *rapid.T) *scene {
	s := &scene{speed: map[string]float64{}, other: map[string]Rate{}}
	var names []string
	for i := range rapid.IntRange(1, 5).Draw(t, "uplinks") {
		name := fmt.Sprint("u", i)
		names = append(names, name)
		s.speed[name] = rapid.SampledFrom([]float64{1e8, gigabit, gigabit, 10 * gigabit}).Draw(t, "speed")
		s.other[name] = Rate{rapid.Float64Range(0, 6e8).Draw(t, "in"), rapid.Float64Range(0, 6e8).Draw(t, "out")}
	}
	for i := range rapid.IntRange(0, 40).Draw(t, "ports") {
		s.ports = append(s.ports, Port{
			Name: fmt.Sprint("p", i), Uplink: rapid.SampledFrom(names).Draw(t, "uplink"),
			Choices: rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, "choices"),
			In:      rapid.Float64Range(0, 1e9).Draw(t, "in"), Out: rapid.Float64Range(0, 1e9).Draw(t, "out"),
		})
	}
	return s
}

// Under a constant load ports settle; every move relieves a loaded uplink and leaves no uplink as loaded as that was;
// and an uplink that stays loaded has no port that a move would help.
func TestS47_Property_AConstantLoadSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		for n := 0; ; n++ {
			before := map[string]float64{}
			for _, u := range s.uplinks() {
				before[u.Name] = u.Load()
			}
			moves := s.window()
			if len(moves) == 0 {
				break
			}
			if n > 40*len(s.ports) {
				t.Fatalf("no end after %d windows: %v", n, moves)
			}
			from := map[string]bool{}
			for _, m := range moves {
				if before[m.From] <= Threshold || from[m.From] || m.From == m.To {
					t.Fatalf("%+v of %v", m, before)
				}
				from[m.From] = true
			}
			for _, u := range s.uplinks() {
				for _, m := range moves {
					if m.To == u.Name && u.Load() >= max(before[m.From], before[u.Name]) && len(moves) == 1 {
						t.Fatalf("%+v loads %s with %.0f %%: before %v", m, u.Name, u.Load(), before)
					}
				}
			}
		}
		stuck(t, s)
	})
}

// stuck checks the final state against S47.
func stuck(t *rapid.T, s *scene) {
	by := map[string]*Uplink{}
	list := s.uplinks()
	for i := range list {
		by[list[i].Name] = &list[i]
	}
	for _, p := range s.ports {
		from := by[p.Uplink]
		for _, name := range p.Choices {
			if to := by[name]; from.Load() > Threshold && name != p.Uplink && helps(p, from, to) {
				t.Fatalf("%s stays on %s (%.0f %%) though %s (%.0f %%) would take it", p.Name, p.Uplink, from.Load(),
					name, to.Load())
			}
		}
	}
}

func TestS48_Property_BelowTheThresholdNothingMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		worst := 0.0
		for _, u := range s.uplinks() {
			worst = max(worst, u.Load())
		}
		if worst > Threshold {
			down := Threshold / worst * 0.999
			for i := range s.ports {
				s.ports[i].In, s.ports[i].Out = s.ports[i].In*down, s.ports[i].Out*down
			}
			for name, r := range s.other {
				s.other[name] = Rate{r.In * down, r.Out * down}
			}
		}
		if moves := s.window(); len(moves) > 0 {
			t.Fatalf("moves at %.1f %% and less: %v", min(worst, Threshold), moves)
		}
	})
}

func TestWindow_IsTheMeanSinceTheLastSample(t *testing.T) {
	var w Window[string]
	start := time.Unix(100, 0)
	at := func(seconds int, counted map[string]Bytes) (map[string]Rate, bool) {
		return w.Next(start.Add(time.Duration(seconds)*time.Second), counted, Interval)
	}
	if _, ok := at(0, map[string]Bytes{"a": {1000, 0}}); ok {
		t.Error("one sample makes a window")
	}
	got, ok := at(30, map[string]Bytes{"a": {4000, 30}, "new": {9, 9}})
	if want := map[string]Rate{"a": {800, 8}}; !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, ok, want)
	}
	got, ok = at(60, map[string]Bytes{"a": {3999, 60}, "new": {9, 39}})
	if want := map[string]Rate{"new": {0, 8}}; !ok || !reflect.DeepEqual(got, want) { // the counters of a were reset
		t.Errorf("%v, %v; want %v", got, ok, want)
	}
	if _, ok := at(130, nil); ok {
		t.Error("a window of 70 s counts")
	}
	if _, ok := at(140, nil); ok {
		t.Error("a window of 10 s counts")
	}
	w.Forget()
	if _, ok := at(170, nil); ok {
		t.Error("it goes on after it was told to forget")
	}
}
