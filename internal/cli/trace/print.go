package trace

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"heddle/internal/cli"
	"heddle/internal/diagnose"
)

// lines writes a report for people. Long sentences are wrapped to the width of a table.
type lines struct {
	w       io.Writer
	d       cli.Deps
	verbose bool
	err     error
}

// add writes a text behind a label, in lines as wide as the terminal at most, the continued ones under the first.
func (l *lines) add(indent int, label string, width int, text string) {
	head := strings.Repeat(" ", indent) + label + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(label)))
	for _, line := range cli.Wrap(text, l.d.TextWidth()-indent-width) {
		l.put(head + line)
		head = strings.Repeat(" ", indent+width)
	}
}

// put writes a line as it is.
func (l *lines) put(line string) {
	if _, err := fmt.Fprintf(l.w, "%s\n", strings.TrimRight(line, " ")); err != nil && l.err == nil {
		l.err = err
	}
}

func (l *lines) blank() { l.add(0, "", 0, "") }

// printTrace prints the answer and what changes it, then the details. verbose adds what developers want to know.
func printTrace(d cli.Deps, w io.Writer, r *diagnose.Report, verbose bool) error {
	l := &lines{w: w, d: d, verbose: verbose}
	l.answer(r)
	switch {
	case r.Talk != nil:
		if err := l.talk(r); err != nil {
			return err
		}
	case len(r.Frames) == 1:
		l.frame(r, &r.Frames[0])
	default:
		if err := l.summary(r); err != nil {
			return err
		}
	}
	if len(r.Notes) > 0 {
		l.blank()
	}
	for _, n := range r.Notes {
		l.add(0, "note:", 6, n)
	}
	return l.err
}

// answer prints the answer as a sentence, and for a no what changes it.
func (l *lines) answer(r *diagnose.Report) {
	a := &r.Answer
	if a.Verdict == "" {
		return
	}
	text := a.Text
	if a.Fix != "" {
		text += "; fix: " + a.Fix
	}
	word := string(a.Verdict) + ":"
	l.add(0, l.d.Coloured(verdictColour(a.Verdict), word)+" ", len(word)+1, text)
	if a.Verdict == diagnose.No {
		if all := causesOf(r); len(all) > 0 {
			l.remedy(&all[0])
		}
	}
	l.blank()
}

func verdictColour(v diagnose.Verdict) string {
	return map[diagnose.Verdict]string{diagnose.Yes: cli.Green, diagnose.No: cli.Red, diagnose.Unknown: cli.Yellow}[v]
}

// causesOf returns the causes in a report: that of its answer first.
func causesOf(r *diagnose.Report) []diagnose.Cause {
	var all []diagnose.Cause
	switch {
	case r.Talk != nil:
		all = slices.Clone(r.Talk.Causes)
	case len(r.Frames) == 1:
		all = slices.Clone(r.Frames[0].Causes)
	}
	slices.SortStableFunc(all, func(a, b diagnose.Cause) int {
		return rankOf(a.Reason != r.Answer.Reason) - rankOf(b.Reason != r.Answer.Reason)
	})
	return all
}

func rankOf(late bool) int {
	if late {
		return 1
	}
	return 0
}

// others prints the causes that are not in the answer.
func (l *lines) others(r *diagnose.Report) {
	all := causesOf(r)
	if r.Answer.Verdict == diagnose.No && len(all) > 0 {
		all = all[1:]
	}
	l.causes(all)
}

// frame prints one frame in full.
func (l *lines) frame(r *diagnose.Report, f *diagnose.Frame) {
	which := ""
	if r.Sent > 0 {
		which = fmt.Sprintf("frame %d, ", f.Number)
	}
	l.add(0, "", 0, fmt.Sprintf("from %s: %s%s, %d bytes", r.From, which, f.Summary, f.Length))
	for _, a := range f.Assumed {
		l.add(2, "assumed:", 9, a)
	}
	if len(f.Steps) > 0 {
		l.blank()
	}
	for i, s := range f.Steps {
		label := s.Stage
		if i > 0 && f.Steps[i-1].Stage == s.Stage {
			label = ""
		}
		l.add(0, label, 10, s.Text)
	}
	l.blank()
	l.outcome(f)
	l.others(r)
	l.kernel(f.Kernel, f.Differences)
}

func (l *lines) outcome(f *diagnose.Frame) {
	if !f.Delivered {
		l.add(0, "", 0, l.d.Coloured(cli.Red, "dropped")+" ("+f.Reason+"): nobody gets it")
		return
	}
	l.add(0, "", 0, l.d.Coloured(cli.Green, "delivered")+" to")
	for _, c := range f.Copies {
		l.add(2, "", 0, copyWords(c))
	}
}

// copyWords describes a copy: "uplink1 (uplink, device eno1): VLAN 10, 64 bytes". Of one that leaves by a tunnel it
// names
// the packets.
func copyWords(c diagnose.Copy) string {
	what := string(c.Kind)
	if c.Kind == diagnose.ToHost {
		what = "the host's own stack"
	}
	if c.Device != "" {
		what += ", device " + c.Device
	}
	words := fmt.Sprintf("%s (%s): %s, %d bytes", c.To, what, c.Tag, c.Length)
	if out := c.Packets(mostOuter); out != "" {
		words += ", in " + out
	}
	return words
}

// mostOuter is how many packets of a copy are named.
const mostOuter = 8

func (l *lines) causes(list []diagnose.Cause) {
	for _, c := range list {
		l.blank()
		who := "why nobody"
		if c.Port != "" {
			who = "why not " + c.Port
		}
		l.add(0, "", 0, fmt.Sprintf("%s (%s): %s", who, l.d.Coloured(cli.Yellow, c.Reason), c.Why))
		l.remedy(&c)
	}
}

// remedy prints the setting behind a cause, and what changes it.
func (l *lines) remedy(c *diagnose.Cause) {
	policy := c.Policy
	if c.Value != "" {
		policy += " = " + c.Value
	}
	l.add(2, "policy:", 9, policy)
	l.add(2, "set by:", 9, c.From)
	l.add(2, "change:", 9, c.Change)
	if e := c.Edit; e != nil {
		file := ""
		if e.File != "" {
			file = "in " + e.File + ", "
		}
		l.add(2, "edit:", 9, file+e.Object()+": "+e.Set)
	}
	l.put("  command: " + c.Command) // unbroken, so that it can be copied
}

// kernel prints the result of the comparison with the kernel program, if users need to know it.
func (l *lines) kernel(says diagnose.KernelSays, differences []string) {
	if len(differences) == 0 && (says == diagnose.KernelAgrees || says == "") && !l.verbose {
		return
	}
	l.blank()
	switch {
	case len(differences) > 0:
		l.add(0, "", 0, l.d.Coloured(cli.Red, "model and kernel program disagree")+
			": this is a fault of Heddle; what the kernel program does is what happens")
	case says == diagnose.KernelAgrees:
		l.add(0, "", 0, "model and kernel program agree")
	case says == diagnose.KernelNone:
		l.add(0, "", 0, "by the model; the kernel program was not asked: there is none here")
	case says == diagnose.KernelTooShort:
		l.add(0, "", 0,
			"by the model; the kernel program was not asked: it is never given less than an Ethernet header")
	default:
		l.add(0, "", 0, "by the model; the kernel program was not asked: "+string(says))
	}
	for _, line := range differences {
		l.add(2, "", 0, line)
	}
}

// agreement returns the result of the comparison for several frames.
func agreement(differ []string) diagnose.KernelSays {
	if len(differ) > 0 {
		return diagnose.KernelDisagrees
	}
	return diagnose.KernelAgrees
}

// summary prints each of several frames in one line.
func (l *lines) summary(r *diagnose.Report) error {
	tab := &cli.Table{Head: []string{"PACKET", "BYTES", "OUTCOME", "TO", "FRAME"}, Right: map[int]bool{0: true,
		1: true},
		Keep: map[int]bool{2: true}}
	var differ []string
	for _, f := range r.Frames {
		outcome, to := "delivered", make([]string, 0, len(f.Copies))
		if !f.Delivered {
			outcome = f.Reason
		}
		for _, c := range f.Copies {
			to = append(to, c.To)
		}
		tab.Add(fmt.Sprint(f.Number), fmt.Sprint(f.Length), outcome, cli.Dash(strings.Join(to, ",")), f.Summary)
		for _, line := range f.Differences {
			differ = append(differ, fmt.Sprintf("packet %d: %s", f.Number, line))
		}
	}
	if err := tab.Write(l.w); err != nil {
		return err
	}
	l.kernel(agreement(differ), differ)
	l.blank()
	l.add(0, "", 0, "one of them in full: --packet N")
	return nil
}

func (l *lines) talk(r *diagnose.Report) error {
	if len(r.Talk.Protocols) == 0 { // an end is not connected
		return nil
	}
	l.add(0, "", 0, fmt.Sprintf("%s and %s", r.From, r.To))
	l.blank()
	for _, p := range r.Talk.Protocols {
		verdict := l.d.Coloured(verdictColour(p.Verdict), fmt.Sprintf("%-9s", p.Verdict))
		l.add(0, fmt.Sprintf("%-6s%s", p.Name, verdict), 15, p.Path)
	}
	l.blank()
	var differ []string
	tab := &cli.Table{Head: []string{"FRAME", "FROM", "TO", "ARRIVES", "PATH"}, Keep: map[int]bool{0: true, 3: true}}
	for _, h := range r.Talk.Hops {
		path := h.Path
		if h.Verdict != diagnose.Yes && h.Reason != "" {
			path = strings.TrimPrefix(path+"; "+h.Reason, "-; ")
		}
		tab.Add(h.Protocol+" "+h.Frame, h.From, h.To, string(h.Verdict), path)
		for _, line := range h.Differ {
			differ = append(differ, fmt.Sprintf("%s %s from %s: %s", h.Protocol, h.Frame, h.From, line))
		}
	}
	if err := tab.Write(l.w); err != nil {
		return err
	}
	l.others(r)
	l.kernel(agreement(differ), differ)
	return nil
}
