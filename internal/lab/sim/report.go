package sim

import (
	"fmt"
	"strings"
	"time"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
	"heddle/internal/lab/report/topology"
	"heddle/internal/lab/scenario"
)

// Report makes the report of a simulation in the form of the real run's. Throughput, retransmits, times and CPU cannot
// be simulated: they count as not measured.
func Report(e *experiment.Experiment, all []Result) *report.Report {
	r := &report.Report{Name: e.Name + " (simulated)", Simulated: true, Explained: e.Explained,
		Environment: report.Collect(time.Now())}
	r.Plots = []report.Plot{
		{Title: "Replies to each ping", Series: []report.Series{{Field: "replies_per_ping"}}},
		{Title: "Frames that each ping puts on uplinks", Series: []report.Series{{Field: "ping_uplink_frames"}}},
	}
	for _, m := range all {
		row := report.Row{
			{Name: "name", Title: "row", Value: m.Row.Name},
			{Name: "setting", Value: m.Row.Setting, Hidden: true},
		}
		if e.Name == experiment.Placement {
			row = append(row, report.Field{Name: "leaves_host", Title: "leaves host", Value: m.leaves()})
		}
		r.Rows = append(r.Rows, append(append(row, counts(m)...), links(m)...))
		r.Budgets = append(r.Budgets, m.Row.Budgets(m.RepliesPerPing)...)
	}
	r.Conclusions, r.Notes = Explain(e, all), []string{method, columns}
	var labs []*scenario.Scenario
	for i := range all {
		labs = append(labs, all[i].Row.Scenario)
	}
	r.Labs = topology.Distinct(labs...)
	return r
}

// counts are the fields that simulated and real rows share, and the copies of a ping.
func counts(m Result) report.Row {
	return report.Row{
		{Name: "replies_per_ping", Title: "replies", Value: m.RepliesPerPing},
		{Name: "ping_uplink_frames", Title: "to uplinks/ping", Value: m.perPing(m.UplinkFrames)},
		{Name: "ping_copies", Title: "copies/ping", Value: m.perPing(m.Copies)},
		{Name: "throughput_bps", Title: "throughput", Value: nil, Unit: report.BitsPerSecond},
		{Name: "retransmits", Title: "retr", Value: nil, Unit: report.Count},
		{Name: "cpu_s_per_gb", Title: "CPU s/GB", Value: nil},
		{Name: "pings", Value: m.Pings, Unit: report.Count, Hidden: true},
		{Name: "uplink_frames", Value: m.UplinkFrames, Unit: report.Count, Hidden: true},
		{Name: "copies", Value: m.Copies, Unit: report.Count, Hidden: true},
		{Name: "simulated", Value: true, Hidden: true},
		{Name: "links", Value: m.Links, Hidden: true},
	}
}

// links makes a column for every link: the frames per ping that leave the end in its name, and those that come in
// there.
func links(m Result) report.Row {
	var row report.Row
	for _, l := range m.Links {
		row = append(row, report.Field{
			Name: l.A, Title: l.A + " out/in", TableOnly: true,
			Value: fmt.Sprintf("%.4g/%.4g", m.perPing(l.AtoB), m.perPing(l.BtoA)),
		})
	}
	return row
}

// leaves reports whether the traffic uses the wire.
func (r Result) leaves() bool { return r.perPing(r.UplinkFrames) >= 1 }

// Explain says in sentences what the counts show. It claims nothing that they do not support, and leaves out what needs
// a row that was not simulated.
func Explain(e *experiment.Experiment, all []Result) []string {
	var notes []string
	if e.Name == experiment.Placement {
		notes = explainPlacement(all)
	} else {
		notes = explainNested(all)
	}
	return notes
}

// method says how the counts came about.
const method = "Simulated on the model alone: the counts are exact, and a simulation has no throughput to measure."

// columns says what the headings mean.
const columns = "Columns: replies: answers to each ping; more than one are duplicates. to uplinks/ping: frames that " +
	"a ping puts on uplinks. copies/ping: copies that the hosts' switches deliver of it. out/in: frames per ping " +
	"that leave the named end of a link and that come in there."

func explainNested(all []Result) []string {
	rows := map[string]Result{}
	for _, m := range all {
		rows[m.Row.Name] = m
	}
	var notes []string
	if dual, ok := rows["promiscuous-dual"]; ok {
		notes = append(notes, promiscuousSentence(dual))
	}
	if single, ok := rows["promiscuous-single"]; ok {
		notes = append(notes, otherwiseSentence(single, rows))
	}
	if learning, ok := rows["mac-learning-dual"]; ok {
		notes = append(notes, learningSentence(learning, rows))
	}
	return notes
}

func promiscuousSentence(dual Result) string {
	s := fmt.Sprintf("In promiscuous mode with two uplinks every ping gets %.1f replies and puts %.1f frames on the "+
		"uplinks",
		dual.RepliesPerPing, dual.perPing(dual.UplinkFrames))
	if dual.RepliesPerPing < 1.5 {
		return s + ": the articles' duplicates do not show."
	}
	return s + ": the switch does not know the nested host's address, hands its frames to the promiscuous neighbour " +
		"and also to the sender's uplink, and the physical switch sends them back in on the neighbour's."
}

func otherwiseSentence(single Result, rows map[string]Result) string {
	s := fmt.Sprintf("With one uplink the physical switch has no other way to send a frame back: a ping gets %.1f "+
		"replies. But %.1f frames of it are on the uplink, and nobody needs them there.",
		single.RepliesPerPing, single.perPing(single.UplinkFrames))
	if checked, ok := rows["promiscuous-dual-checked"]; ok {
		s += fmt.Sprintf(" With two uplinks and Heddle's reflection check a ping gets %.1f replies.",
			checked.RepliesPerPing)
	}
	return s
}

func learningSentence(learning Result, rows map[string]Result) string {
	s := fmt.Sprintf("MAC learning sends each frame to the one port that has its destination: %.1f replies and %.1f "+
		"frames of a ping on the uplinks",
		learning.RepliesPerPing, learning.perPing(learning.UplinkFrames))
	promiscuous, ok1 := rows["two-hosts-promiscuous"]
	learned, ok2 := rows["two-hosts-mac-learning"]
	if ok1 && ok2 {
		s += fmt.Sprintf("; on two physical hosts, where every frame has to use the wire, it is %.1f against %.1f "+
			"with promiscuous mode",
			learned.perPing(learned.UplinkFrames), promiscuous.perPing(promiscuous.UplinkFrames))
	}
	return s + "."
}

// explainPlacement says for each case whether the traffic leaves the host.
func explainPlacement(all []Result) []string {
	var out, in []string
	for _, m := range all {
		if m.leaves() {
			out = append(out, m.Row.Setting)
		} else {
			in = append(in, m.Row.Setting)
		}
	}
	var notes []string
	if len(out) > 0 {
		notes = append(notes, "Frames leave the host: "+strings.Join(out, "; ")+".")
	}
	if len(in) > 0 {
		notes = append(notes, "Frames stay in the host: "+strings.Join(in, "; ")+".")
	}
	return append(notes, "A port group is a set of policies and no boundary: what decides is whether the two ports "+
		"are in the same VLAN of the same switch.")
}
