package run

import (
	"fmt"
	"strings"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
)

// Explain says in sentences what the measured values show. It claims nothing that the values do not support, and leaves
// out what needs a row that was not measured.
func Explain(e *experiment.Experiment, all []Measured) []string {
	rows := map[string]Measured{}
	for _, m := range all {
		rows[m.Row.Name] = m
	}
	if e.Name == experiment.Placement {
		return explainPlacement(all)
	}
	return explainNested(rows)
}

func speed(m Measured) string { return report.BitsPerSecond.Format(m.bitsPerSecond()) }

// columns says what the columns of an experiment's table are.
func columns(e *experiment.Experiment) string {
	const rates = "iperf3 and own: payload of one TCP connection, by iperf3 and by Heddle's own sender. "
	if e.Name == experiment.Placement {
		return "Columns: to uplinks/ping: frames that a ping puts on the host's uplinks. " + rates +
			"to uplinks: frames on them during the streams. article: whether the article saw frames leave the host."
	}
	return "Columns: " + rates + "ratio: to the first row. retr: TCP segments sent again. replies: answers to each " +
		"ping; more than one are duplicates. p50, p99: round trips of pings beside Heddle's own sender. DUP after: " +
		"how long after the first reply to a ping each further one came, without load. uplinks: frames handed to the " +
		"hosts' uplinks during the streams; dropped in, out: what uplinks dropped then, also copies that came back. " +
		"CPU s/GB: seconds of all processors for 10⁹ bytes. articles, Gb/s: what (1) and (2) measured on ESXi."
}

// explainNested contrasts promiscuous mode on two uplinks with its remedies.
func explainNested(rows map[string]Measured) []string {
	dual, haveDual := rows["promiscuous-dual"]
	learning, haveLearning := rows["mac-learning-dual"]
	var notes []string
	if haveDual {
		notes = append(notes, promiscuousSentence(dual))
	}
	if single, ok := rows["promiscuous-single"]; ok {
		notes = append(notes, otherwiseSentence(single, rows))
	}
	if haveDual && haveLearning {
		notes = append(notes, learningSentence(dual, learning, rows))
	}
	return notes
}

func promiscuousSentence(dual Measured) string {
	if dual.RepliesPerPing < 1.5 {
		return fmt.Sprintf("In promiscuous mode with two uplinks a ping got %.1f replies here, so the articles' "+
			"duplicates did not show, and the stream reached %s.",
			dual.RepliesPerPing, speed(dual))
	}
	return fmt.Sprintf("In promiscuous mode with two uplinks every ping got %.1f replies and the stream reached %s: "+
		"the switch does not know the nested host's address, hands its frames to the promiscuous neighbour and also "+
		"to the sender's uplink, and the physical switch sends them back in on the neighbour's.",
		dual.RepliesPerPing, speed(dual))
}

func otherwiseSentence(single Measured, rows map[string]Measured) string {
	s := fmt.Sprintf("With one uplink the physical switch has no other way to send a frame back: a ping got %.1f "+
		"replies, and the stream reached %s. But the uplink carried %.0f %% of the delivered bytes, and nobody needed "+
		"them there.",
		single.RepliesPerPing, speed(single), 100*single.uplinkShare())
	if checked, ok := rows["promiscuous-dual-checked"]; ok {
		s += fmt.Sprintf(" With two uplinks and Heddle's reflection check a ping got %.1f replies, and the stream "+
			"reached %s.", checked.RepliesPerPing, speed(checked))
	}
	return s
}

func learningSentence(dual, learning Measured, rows map[string]Measured) string {
	s := fmt.Sprintf("MAC learning sends each frame to the one port that has its destination: %.1f replies, %.0f %% "+
		"of the bytes on the uplinks, and %s, which is %.1f times promiscuous mode",
		learning.RepliesPerPing, 100*learning.uplinkShare(), speed(learning),
		learning.bitsPerSecond()/dual.bitsPerSecond())
	promiscuous, ok1 := rows["two-hosts-promiscuous"]
	learned, ok2 := rows["two-hosts-mac-learning"]
	if ok1 && ok2 {
		s += fmt.Sprintf("; on two physical hosts, where every frame has to use the wire, it is %s against %s",
			speed(promiscuous), speed(learned))
	}
	return s + "."
}

// explainPlacement says for each case whether the traffic left the host.
func explainPlacement(all []Measured) []string {
	var out, in []string
	for _, m := range all {
		text := fmt.Sprintf("%s (%s, %s)", m.Row.Setting, report.Seconds.Format(m.RTT), speed(m))
		if m.PingUplinkFrames >= 1 {
			out = append(out, text)
		} else {
			in = append(in, text)
		}
	}
	var notes []string
	if len(out) > 0 {
		notes = append(notes, "Frames left the host: "+strings.Join(out, "; ")+".")
	}
	if len(in) > 0 {
		notes = append(notes, "Frames stayed in the host: "+strings.Join(in, "; ")+".")
	}
	return append(notes, "A port group is a set of policies and no boundary: what decides is whether the two ports "+
		"are in the same VLAN of the same switch.")
}
