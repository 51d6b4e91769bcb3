package chaos

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is what a fault does.
type Kind string

// The kinds of faults.
const (
	// KillController, KillAgent and KillMember end a process with SIGKILL; it is started again at the fault's end.
	KillController Kind = "kill controller"
	KillAgent      Kind = "kill agent"
	KillMember     Kind = "kill member of etcd"
	// CutController and CutLeader unplug the cable of a machine: of that controller, and of whoever leads etcd then.
	CutController Kind = "cut off controller"
	CutLeader     Kind = "cut off etcd's leader"
	// CutState drops what a controller and etcd say to each other. Hosts and other controllers reach it as before.
	CutState Kind = "cut off from etcd"
	// CutHosts unplugs the management network of half the hosts. Their guests' network is another one.
	CutHosts Kind = "cut off half the hosts"
)

// Fault is something that happens to a fleet for a while.
type Fault struct {
	// At is when it begins, counted from the start, and For how long it lasts.
	At, For time.Duration
	Kind    Kind
	// Who is the number of the controller, agent or member, counted from 0. Of CutHosts it is the first of the hosts,
	// of CutLeader it says nothing.
	Who int
}

// Ends is when a fault ends.
func (f Fault) Ends() time.Duration { return f.At + f.For }

// Fleet is how many of everything there are. Members are those of an outside etcd: none where controllers run their
// own.
type Fleet struct{ Controllers, Hosts, Members int }

// Bounds of faults.
const (
	// A killed process is away for less than longestDeath, or started again at once.
	longestDeath = 2500 * time.Millisecond
	// A cut has to last longer than a controller without a majority keeps its hosts, which are 3 s.
	shortestCut, longestCut = 4 * time.Second, 8 * time.Second
	// between is the longest time from one fault to the next.
	between = 1500 * time.Millisecond
)

// deck is what happens before anything happens again: no run is without one of the kinds.
func (f Fleet) deck() []Kind {
	d := []Kind{KillController, KillController, KillController, KillAgent, KillAgent, KillAgent, KillAgent,
		CutController, CutState, CutLeader, CutHosts}
	if f.Members > 0 {
		d = append(d, KillMember, KillMember, KillMember, KillMember)
	}
	return d
}

// Plan is what happens to a fleet within a time; it has ended by then. The same seed gives the same plan.
func Plan(seed uint64, length time.Duration, fleet Fleet) (all []Fault) {
	random := rand.New(rand.NewPCG(seed, 0))
	var deck []Kind
	for at := time.Duration(0); ; at += between/10 + span(random, between) {
		if len(deck) == 0 {
			deck = fleet.deck()
			random.Shuffle(len(deck), func(i, k int) { deck[i], deck[k] = deck[k], deck[i] })
		}
		f := draw(random, deck[0], fleet)
		if f.At = free(f, at, all); f.Ends() > length {
			return all
		}
		all = append(all, f)
		deck = deck[1:]
	}
}

// draw makes a fault of a kind.
func draw(random *rand.Rand, kind Kind, fleet Fleet) Fault {
	f := Fault{Kind: kind, For: shortestCut + span(random, longestCut-shortestCut)}
	switch kind {
	case KillController, KillAgent, KillMember:
		f.For = max(0, span(random, longestDeath*5/4)-longestDeath/4)
	}
	switch kind {
	case KillController, CutController, CutState:
		f.Who = random.IntN(fleet.Controllers)
	case KillMember:
		f.Who = random.IntN(fleet.Members)
	case KillAgent, CutHosts:
		f.Who = random.IntN(fleet.Hosts)
	}
	return f
}

func span(random *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(d)))
}

// free is when a fault can begin, at the earliest at that time: no process is killed that is dead, and one cut at a
// time is enough.
func free(f Fault, at time.Duration, all []Fault) time.Duration {
	for _, o := range all {
		if f.excludes(o) {
			at = max(at, o.Ends())
		}
	}
	return at
}

func (f Fault) excludes(o Fault) bool {
	if f.cuts() && o.cuts() {
		return true
	}
	return f.Kind == o.Kind && f.Who == o.Who
}

func (f Fault) cuts() bool {
	return slices.Contains([]Kind{CutController, CutState, CutLeader, CutHosts}, f.Kind)
}
