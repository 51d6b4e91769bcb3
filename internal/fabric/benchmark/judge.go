package benchmark

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"heddle/internal/fabric"
	"heddle/internal/fabric/alike"
)

// Result is what came of a flow.
type Result struct {
	Flow
	// Sent are frames that were sent, Frames those that arrived, each once, Duplicates the others.
	Sent, Frames, Duplicates uint64
	// Lasted is for how long it was sent.
	Lasted time.Duration
	// Pings are requests that were sent meanwhile, Answered those with an answer, Replies all answers.
	Pings, Answered, Replies uint64
	// P50 and P99 of the round-trip times, 0 without an answer.
	P50, P99 time.Duration
	// Faults say what is wrong with it. Judge sets them.
	Faults []Fault
}

// Fault is what is wrong with a flow.
type Fault string

// The faults.
const (
	// Silent: no ping was answered, and so nothing else was sent.
	Silent Fault = "no-answer"
	// Slow: of the rate that it was to have, it got less than half of what the median flow got.
	Slow Fault = "slow"
	// Lossy: 5 % of its frames or more, and at least three, did not arrive.
	Lossy Fault = "lossy"
	// Late: half of its pings took five times as long as those of the median flow, and 5 ms more.
	Late Fault = "late"
	// Twice: frames arrived more than once.
	Twice Fault = "duplicates"
)

// When a flow has a fault; see there.
const (
	slowShare = 0.5
	lossShare = 0.05
	lossLeast = 3
	lateTimes = 5
	lateMore  = 5 * time.Millisecond
)

// Lost returns how many frames did not arrive.
func (r *Result) Lost() uint64 { return r.Sent - min(r.Sent, r.Frames) }

// Offered returns how much was sent, Throughput how much arrived, in bits per second of layer 3.
func (r *Result) Offered() float64 { return r.bits(r.Sent) }

// Throughput returns how much arrived, in bits per second of layer 3; frames that came twice count once.
func (r *Result) Throughput() float64 { return r.bits(r.Frames) }

func (r *Result) bits(frames uint64) float64 {
	if r.Lasted <= 0 {
		return 0
	}
	return float64(frames) * float64(r.MTU) * 8 / r.Lasted.Seconds()
}

// got returns which part of the rate arrived that it was to have.
func (r *Result) got() float64 { return r.Throughput() / float64(max(r.Rate, 1)) }

// Names returns the flow for people.
func (r *Result) Names() string { return r.From.What() + " to " + r.To.What() }

// Judge finds the faults of each flow, and returns lines about which flows have faults and what these share that the
// others do not.
func Judge(list []Result) (lines []string) {
	shares, delays := []float64{}, []time.Duration{}
	for i := range list {
		if r := &list[i]; r.Answered > 0 {
			shares, delays = append(shares, r.got()), append(delays, r.P50)
		}
	}
	share, delay := median(shares), median(delays)
	var bad, good []*Result
	for i := range list {
		r := &list[i]
		if r.Faults = r.faults(share, delay); len(r.Faults) > 0 {
			bad = append(bad, r)
		} else {
			good = append(good, r)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return groups(bad, good, len(list))
}

func median[T cmp.Ordered](list []T) (m T) {
	if len(list) == 0 {
		return m
	}
	slices.Sort(list)
	return list[len(list)/2]
}

func (r *Result) faults(share float64, delay time.Duration) (list []Fault) {
	if r.Answered == 0 {
		return []Fault{Silent}
	}
	if r.got() < share*slowShare {
		list = append(list, Slow)
	}
	if lost := r.Lost(); lost >= lossLeast && float64(lost) >= float64(r.Sent)*lossShare {
		list = append(list, Lossy)
	}
	if r.P50 >= delay*lateTimes && r.P50 >= delay+lateMore {
		list = append(list, Late)
	}
	if r.Duplicates > 0 || r.Replies > r.Answered {
		list = append(list, Twice)
	}
	return list
}

// mostLines is how many groups of flows with faults are named, mostNamed how many flows of each.
const (
	mostLines = 8
	mostNamed = 6
)

// groups says what all flows with faults share; where that is nothing, what those share that meet at one uplink, the
// one with the most of them first.
func groups(bad, good []*Result, all int) (lines []string) {
	for len(bad) > 0 {
		group := bad
		common := alike.Of(group, good, traits(group[0]))
		if most := busiest(bad); common == "" && len(most) > 1 && len(most) < len(bad) {
			group = most
			common = alike.Of(group, good, traits(group[0]))
		}
		if len(lines)+1 == mostLines && len(group) < len(bad) {
			return append(lines, fmt.Sprintf("%d more of %d pairs have faults", len(bad), all))
		}
		lines = append(lines, line(group, common, all))
		bad = slices.DeleteFunc(slices.Clone(bad), func(r *Result) bool { return slices.Contains(group, r) })
	}
	return lines
}

func line(group []*Result, common string, all int) string {
	kinds := map[Fault]int{}
	for _, r := range group {
		for _, f := range r.Faults {
			kinds[f]++
		}
	}
	var what, names []string
	for _, k := range []struct {
		f    Fault
		text string
	}{{Silent, "get no answer"}, {Slow, "are slow"}, {Lossy, "lose frames"}, {Late, "are late"},
		{Twice, "get frames twice"}} {
		if kinds[k.f] > 0 {
			what = append(what, k.text)
		}
	}
	for _, r := range group[:min(len(group), mostNamed)] {
		names = append(names, r.Names())
	}
	if n := len(group) - mostNamed; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	text := fmt.Sprintf("%d of %d pairs %s (%s)", len(group), all, strings.Join(what, " or "), strings.Join(names,
		", "))
	if len(group) == 1 {
		return text
	}
	return text + "; " + cmp.Or(common, "they share nothing that most others do not")
}

// busiest returns the flows with faults that meet at the uplink that most of them use.
func busiest(bad []*Result) (group []*Result) {
	at := map[fabric.End][]*Result{}
	for _, r := range bad {
		for _, e := range []fabric.End{r.From.End, r.To.End} {
			if at[e] = append(at[e], r); len(at[e]) > len(group) {
				group = at[e]
			}
		}
	}
	return group
}

// traits are what flows may share with a first one of them.
func traits(first *Result) []alike.Trait[*Result] {
	list := []alike.Trait[*Result]{
		{What: "they leave by", Of: func(r *Result) string { return r.From.What() }},
		{What: "they arrive at", Of: func(r *Result) string { return r.To.What() }},
		{What: "they come from", Of: func(r *Result) string { return r.From.Name }},
		{What: "they go to", Of: func(r *Result) string { return r.To.Name }},
	}
	either := func(what string, of func(*fabric.Member) string) {
		for _, value := range []string{of(&first.From), of(&first.To)} {
			if value == "" {
				continue
			}
			list = append(list, alike.Trait[*Result]{What: what, Of: func(r *Result) string {
				if of(&r.From) == value || of(&r.To) == value {
					return value
				}
				return ""
			}})
		}
	}
	either("they use", func(m *fabric.Member) string { return m.What() })
	either("they are from or to", func(m *fabric.Member) string { return m.Name })
	either("they are plugged into", device)
	return append(list,
		alike.Trait[*Result]{What: "they are in", Of: func(r *Result) string {
			if r.VLAN == 0 {
				return "no VLAN (untagged)"
			}
			return "VLAN " + strconv.Itoa(int(r.VLAN))
		}},
		alike.Trait[*Result]{What: "they are of switch", Of: func(r *Result) string { return r.From.Switch }},
		alike.Trait[*Result]{What: "they leave by uplinks called", Of: func(r *Result) string { return r.From.Uplink }},
	)
}

// device returns the physical switch into which an uplink is plugged; "" where it is not known. Member.Plug is "port 7
// of tor-a".
func device(m *fabric.Member) string {
	_, name, _ := strings.Cut(m.Plug, " of ")
	return name
}
