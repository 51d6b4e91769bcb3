package difftest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"heddle/internal/abi"
	"heddle/internal/dataplane"
	"heddle/internal/model"
	"heddle/internal/overlay"
)

// ticks are a recorder's milliseconds.
func ticks(n uint64) time.Duration { return time.Duration(n) * time.Millisecond }

// tablesOf converts the kernel's tables of a tunnel into the model's form.
func tablesOf(k *dataplane.CrossingTables) model.Tables {
	t := model.Tables{Heard: map[overlay.Address]model.Heard{}, Told: map[overlay.Address]model.Told{},
		Shares: map[model.Station]model.Share{}, Shown: map[model.Station]model.Shown{}, Said: k.Said, Held: k.Held,
		Counts: model.NeighbourCounts(k.Counts)}
	for at, b := range k.Bindings {
		t.Heard[at] = model.Heard{MAC: b.MAC, Here: b.Flags&abi.BindingHere != 0,
			Advertised: b.Flags&abi.BindingAdvertised != 0, Router: b.Flags&abi.BindingRouter != 0,
			Seen: ticks(b.Seen), Rival: b.Rival, Changed: ticks(b.Changed), Contested: ticks(b.Contested),
			Turns: int(b.Turns), Unannounced: b.Flags&abi.BindingUnannounced != 0,
			Doubt: model.Doubt{Unverified: b.Flags&abi.BindingUnverified != 0,
				Questioned: b.Flags&abi.BindingAsked != 0, Unheard: b.Flags&abi.BindingUnheard != 0,
				Probed: b.Flags&abi.BindingProbed != 0, Asked: b.Asked}}
	}
	for at, b := range k.Told {
		t.Told[at] = model.Told{MAC: b.MAC, Seen: ticks(b.Seen)}
	}
	for who, s := range k.Speakers {
		t.Shares[model.Station(who)] = model.Share{Since: ticks(s.Since), Answers: int(s.Answers),
			Bindings: int(s.Bindings), Answered: s.Answered}
	}
	for who, s := range k.Shown {
		t.Shown[model.Station(who)] = model.Shown{Endpoint: s.Endpoint, Seen: ticks(s.Seen)}
	}
	return t
}

// differTables compares what tunnels know of stations, field by field.
func differTables(want, got model.Tables) string {
	lines := slices.Concat(differMap("heard", want.Heard, got.Heard), differMap("told", want.Told, got.Told),
		differMap("share", want.Shares, got.Shares), differMap("location by frames", want.Shown, got.Shown),
		differMap("location by file or controllers", want.Said, got.Said), differMap("held", want.Held, got.Held))
	if want.Counts != got.Counts {
		lines = append(lines, fmt.Sprintf("counts of ARP and ND: want %+v, got %+v", want.Counts, got.Counts))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func differMap[K, V comparable](what string, want, got map[K]V) (lines []string) {
	for key, w := range want {
		if g, ok := got[key]; !ok {
			lines = append(lines, fmt.Sprintf("%s missing: %+v: %+v", what, key, w))
		} else if g != w {
			lines = append(lines, fmt.Sprintf("%s of %+v:\n  want %+v\n  got  %+v", what, key, w, g))
		}
	}
	for key, g := range got {
		if _, ok := want[key]; !ok {
			lines = append(lines, fmt.Sprintf("%s too many: %+v: %+v", what, key, g))
		}
	}
	return lines
}

// differOuters compares the packets in which a frame leaves, in any order.
func differOuters(want []model.Outer, got []dataplane.RecordedOuter) string {
	list := make([]dataplane.RecordedOuter, len(want))
	for i, o := range want {
		list[i] = dataplane.RecordedOuter{Reason: o.Reason, VNI: o.VNI, From: o.From, To: o.To, TOS: o.TOS}
	}
	got = slices.Clone(got)
	for _, all := range [][]dataplane.RecordedOuter{list, got} {
		for i := range all {
			if all[i].To == (netip.Addr{}) { // nobody is addressed
				all[i].VNI, all[i].TOS = 0, 0
			}
		}
		slices.SortFunc(all, func(a, b dataplane.RecordedOuter) int { return a.To.Compare(b.To) })
	}
	if slices.Equal(list, got) {
		return ""
	}
	return fmt.Sprintf("packets of the tunnel:\n  want %+v\n  got  %+v", list, got)
}
