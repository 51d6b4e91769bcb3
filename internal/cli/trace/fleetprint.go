package trace

import (
	"fmt"
	"io"

	"heddle/internal/cli"
	"heddle/internal/diagnose"
	"heddle/internal/diagnose/across"
)

// printStory prints what becomes of frames from a port of one host to a port of another: the answer, what changes it,
// and then how it comes about, host by host.
func printStory(d cli.Deps, w io.Writer, s *across.Story, verbose bool) error {
	l := &lines{w: w, d: d, verbose: verbose}
	word, text := string(s.Answer.Verdict)+":", s.Answer.Text
	if s.Answer.Fix != "" {
		text += "; fix, on " + s.Host + ": " + s.Answer.Fix
	}
	l.add(0, d.Coloured(verdictColour(s.Answer.Verdict), word)+" ", len(word)+1, text)
	if all := s.Causes(); s.Answer.Verdict == diagnose.No && len(all) > 0 {
		l.remedy(&all[0])
	}
	l.blank()
	if len(s.Legs) == 1 {
		l.leg(&s.Legs[0])
	} else if err := l.legs(s); err != nil {
		return err
	}
	if len(s.Notes) > 0 {
		l.blank()
	}
	for _, n := range s.Notes {
		l.add(0, "note:", 6, n)
	}
	return l.err
}

// legs prints the frames of a conversation as a table, and the whole way of the first that does not arrive.
func (l *lines) legs(s *across.Story) error {
	tab := &cli.Table{Head: []string{"FRAME", "FROM", "TO", "ARRIVES", "PATH"}, Keep: map[int]bool{0: true, 3: true}}
	var failed *across.Leg
	for i := range s.Legs {
		g := &s.Legs[i]
		path := g.Path
		if g.Reason != "" {
			path += "; " + g.Reason
		}
		tab.Add(g.Protocol+" "+g.Frame, g.From.String(), g.To.String(), string(g.Verdict), path)
		if g.Verdict != diagnose.Yes && failed == nil {
			failed = g
		}
	}
	if err := tab.Write(l.w); err != nil {
		return err
	}
	l.blank()
	if failed == nil {
		l.add(0, "between:", 9, s.Legs[0].Network)
		return nil
	}
	l.add(0, "", 0, fmt.Sprintf("the way of the %s %s:", failed.Protocol, failed.Frame))
	l.blank()
	l.leg(failed)
	return nil
}

// leg prints the whole way of one frame.
func (l *lines) leg(g *across.Leg) {
	l.add(0, "", 0, "on host "+g.From.Host)
	l.host(g.Sent)
	if g.Network == "" {
		return
	}
	l.blank()
	l.add(0, "", 0, "between the hosts")
	l.add(2, "", 0, g.Network)
	for _, a := range g.Received {
		l.blank()
		at := fmt.Sprintf("on host %s, at %s", g.To.Host, a.Uplink)
		if !a.Counts {
			at += ", where the physical network does not bring it"
		}
		l.add(0, "", 0, at)
		l.host(a.Report)
	}
}

// host prints what one host says of a frame.
func (l *lines) host(r *diagnose.Report) {
	for i := range r.Frames {
		f := &r.Frames[i]
		l.add(2, "", 0, fmt.Sprintf("from %s: %s, %d bytes", r.From, f.Summary, f.Length))
		for _, a := range f.Assumed {
			l.add(4, "assumed:", 9, a)
		}
		for k, s := range f.Steps {
			label := s.Stage
			if k > 0 && f.Steps[k-1].Stage == s.Stage {
				label = ""
			}
			l.add(2, label, 10, s.Text)
		}
		if !f.Delivered {
			l.add(2, "", 0, l.d.Coloured(cli.Red, "dropped")+" ("+f.Reason+"): nobody gets it")
		}
		for _, c := range f.Copies {
			l.add(2, "to", 10, copyWords(c))
		}
		for _, c := range f.Causes {
			who := "nobody"
			if c.Port != "" {
				who = "not " + c.Port
			}
			l.add(2, "why", 10, fmt.Sprintf("%s (%s): %s", who, c.Reason, c.Why))
		}
		l.kernel(f.Kernel, f.Differences)
	}
}
