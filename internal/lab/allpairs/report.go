package allpairs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"heddle/internal/fabric/alike"
	"heddle/internal/lab/report"
	"heddle/internal/lab/report/topology"
	"heddle/internal/lab/scenario"
)

// slowShare is at which share of the median pair's throughput a pair counts as slow.
const slowShare = 0.5

// Report makes the report of the results.
func Report(all []Measured) *report.Report {
	r := &report.Report{Name: Name, Environment: report.Collect(time.Now()),
		Explained: "explanation/nested-mac-learning.md"}
	var labs []*scenario.Scenario
	for i := range all {
		m := &all[i]
		labs = append(labs, m.scenario)
		r.Rows = append(r.Rows, m.fields())
		if !m.row.promiscuous {
			r.Budgets = append(r.Budgets, report.Hold(m.row.name+" replies per ping", m.repliesPerAnswer(), report.None,
				report.Exactly, 1))
		}
		r.Conclusions = append(r.Conclusions, m.slow()...)
		r.Matrices = append(r.Matrices, m.pictures()...)
	}
	r.Labs = topology.Distinct(labs...)
	r.Conclusions = append(r.Conclusions, compare(all)...)
	r.Notes = []string{
		"Each nested host sends a TCP stream and 20 pings per second to every other one, all at once. sum: of all " +
			"streams; median and least: of the streams of pairs; p50: the median of the pairs' medians, p99 the " +
			"longest of their 99th percentiles; lost: pings without an answer; replies: to each ping that was " +
			"answered, more than 1 are duplicates; uplinks: copies handed to the physical host's uplinks, dropped: " +
			"what these lost. The second article's vSAN hosts sent to each other alike.",
		"All hosts and the switch share this machine's CPUs, so that more pairs do not get more together.",
	}
	for i := range all {
		r.Notes = append(r.Notes, all[i].matrix()...)
	}
	return r
}

func (m *Measured) streams() (list []float64) {
	for _, p := range m.Pairs {
		list = append(list, p.Stream)
	}
	slices.Sort(list)
	return list
}

func (m *Measured) fields() report.Row {
	streams := m.streams()
	sum, p99, lost := 0.0, 0.0, uint64(0)
	var p50 []float64
	for _, p := range m.Pairs {
		sum, p99, lost = sum+p.Stream, math.Max(p99, p.P99), lost+p.Lost
		p50 = append(p50, p.P50)
	}
	slices.Sort(p50)
	return report.Row{
		{Name: "name", Title: "row", Value: m.row.name},
		{Name: "pairs", Title: "pairs", Value: len(m.Pairs), Unit: report.Count},
		{Name: "sum_bps", Title: "sum", Value: sum, Unit: report.BitsPerSecond},
		{Name: "median_bps", Title: "median", Value: streams[len(streams)/2], Unit: report.BitsPerSecond},
		{Name: "least_bps", Title: "least", Value: streams[0], Unit: report.BitsPerSecond},
		{Name: "rtt_p50_s", Title: "p50", Value: p50[len(p50)/2], Unit: report.Seconds},
		{Name: "rtt_p99_s", Title: "p99", Value: p99, Unit: report.Seconds},
		{Name: "pings_lost", Title: "lost", Value: lost, Unit: report.Count},
		{Name: "replies_per_ping", Title: "replies", Value: m.repliesPerAnswer()},
		{Name: "uplink_frames", Title: "uplinks", Value: m.UplinkFrames, Unit: report.Count},
		{Name: "uplink_dropped", Title: "dropped", Value: m.UplinkDropped, Unit: report.Count},
		{Name: "matrix", Value: m.Pairs, Hidden: true},
	}
}

// repliesPerAnswer is how many replies an answered ping got.
func (m *Measured) repliesPerAnswer() float64 {
	replies, answered := uint64(0), uint64(0)
	for _, p := range m.Pairs {
		replies, answered = replies+p.Replies, answered+p.Pings-p.Lost
	}
	if answered == 0 {
		return math.NaN()
	}
	return float64(replies) / float64(answered)
}

// matrix is a line for each sender.
func (m *Measured) matrix() (lines []string) {
	for i := 0; i < len(m.Pairs); i += m.row.hosts - 1 {
		var words []string
		for _, p := range m.Pairs[i : i+m.row.hosts-1] {
			words = append(words, p.To+" "+report.BitsPerSecond.Format(p.Stream))
		}
		lines = append(lines, fmt.Sprintf("%s, from %s (%s): %s.", m.row.name, m.Pairs[i].From, m.Pairs[i].FromUplink,
			strings.Join(words, ", ")))
	}
	return lines
}

// slow says which pairs are slow, and what they share that the others do not.
func (m *Measured) slow() []string {
	streams := m.streams()
	limit := streams[len(streams)/2] * slowShare
	var slow, rest []Pair
	for _, p := range m.Pairs {
		if p.Stream < limit {
			slow = append(slow, p)
		} else {
			rest = append(rest, p)
		}
	}
	if len(slow) == 0 {
		return []string{fmt.Sprintf("%s: no pair has less than half of the median pair's throughput.", m.row.name)}
	}
	var names []string
	for _, p := range slow {
		names = append(names, p.From+" to "+p.To)
	}
	return []string{fmt.Sprintf("%s: %d of %d pairs have less than half of the median pair's throughput (%s); %s.",
		m.row.name, len(slow), len(m.Pairs), strings.Join(names, ", "), shared(slow, rest))}
}

// shared says what all slow pairs have in common and the others do not.
func shared(slow, rest []Pair) string {
	return cmp.Or(alike.Of(slow, rest, []alike.Trait[Pair]{
		{What: "they come from", Of: func(p Pair) string { return p.From }},
		{What: "they go to", Of: func(p Pair) string { return p.To }},
		{What: "their two ports use", Of: func(p Pair) string {
			if p.FromUplink == p.ToUplink {
				return "the same uplink"
			}
			return "different uplinks"
		}},
		{What: "they leave by", Of: func(p Pair) string { return p.FromUplink }},
		{What: "they arrive at a port of", Of: func(p Pair) string { return p.ToUplink }},
	}), "they share no host and no uplink that most others do not")
}

// compare says how promiscuous mode and MAC learning compare with as many hosts.
func compare(all []Measured) (lines []string) {
	sum := map[string]float64{}
	for i := range all {
		for _, p := range all[i].Pairs {
			sum[all[i].row.name] += p.Stream
		}
	}
	for _, n := range []int{2, 4, 8} {
		learning, okLearning := sum[fmt.Sprintf("mac-learning-%d", n)]
		promiscuous, ok := sum[fmt.Sprintf("promiscuous-%d", n)]
		if ok && okLearning && promiscuous > 0 {
			lines = append(lines, fmt.Sprintf("With %d nested hosts, all pairs together have %s times the throughput "+
				"with MAC learning that they have in promiscuous mode.", n, report.Ratio.Format(learning/promiscuous)))
		}
	}
	return lines
}
