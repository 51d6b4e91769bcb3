package trace

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"heddle/internal/abi"
	"heddle/internal/diagnose"
	"heddle/internal/spec/known"
)

// talkAnswer says whether two ends reach each other: one address family suffices for that.
func talkAnswer(t *diagnose.Talk, from, to string) diagnose.Answer {
	four, six := worstOf(t, "ARP", "IPv4"), worstOf(t, "IPv6")
	both := from + " reaches " + to
	switch {
	case four == diagnose.Yes && six == diagnose.Yes:
		return diagnose.Answer{Verdict: diagnose.Yes, Text: both + ": " + pathOf(t, from)}
	case four == diagnose.Yes || six == diagnose.Yes:
		by, not := "IPv4", "IPv6"
		if six == diagnose.Yes {
			by, not = not, by
		}
		return diagnose.Answer{Verdict: diagnose.Yes, Text: both + " by " + by + ", not by " + not + whyNot(t)}
	case four == diagnose.Unknown || six == diagnose.Unknown:
		return diagnose.Answer{Verdict: diagnose.Unknown,
			Text: "whether " + both + " is not known on this host: " + pathOf(t, from)}
	}
	h, c := firstNo(t)
	if c == nil {
		return diagnose.Answer{Verdict: diagnose.No, Text: from + " does not reach " + to}
	}
	return diagnose.Answer{Verdict: diagnose.No, Text: h.From + " does not reach " + h.To + whyNot(t),
		Reason: c.Reason, Fix: fixOf(c)}
}

// worstOf returns the worst verdict of the named protocols.
func worstOf(t *diagnose.Talk, names ...string) diagnose.Verdict {
	worst := diagnose.Yes
	for _, p := range t.Protocols {
		if slices.Contains(names, p.Name) && (p.Verdict == diagnose.No || worst == diagnose.Yes) {
			worst = p.Verdict
		}
	}
	return worst
}

// pathOf describes the path of an end's packets.
func pathOf(t *diagnose.Talk, from string) string {
	i := slices.IndexFunc(t.Hops, func(h diagnose.Hop) bool { return h.Protocol == "IPv4" && h.From == from })
	if i < 0 {
		return ""
	}
	return t.Hops[i].Path
}

// firstNo returns the first frame of the conversation that does not arrive, and why; nil if that is not known.
func firstNo(t *diagnose.Talk) (*diagnose.Hop, *diagnose.Cause) {
	for i := range t.Hops {
		h := &t.Hops[i]
		if h.Verdict != diagnose.No {
			continue
		}
		for j := range t.Causes {
			c := &t.Causes[j]
			if c.Reason == h.Reason && (c.Port == "" || c.Port == h.To) {
				return h, c
			}
		}
		return h, nil
	}
	return nil, nil
}

// whyNot returns the end of a sentence about the first frame of the conversation that does not arrive.
func whyNot(t *diagnose.Talk) string {
	h, c := firstNo(t)
	if c == nil {
		return ""
	}
	return because(c, "the "+h.Protocol+" "+h.Frame, h.From, h.To)
}

// because returns the end of a sentence about a frame that does not reach its receiver, "" if all are receivers.
func because(c *diagnose.Cause, what, from, to string) string {
	end := " because " + clause(c.Why) + " (" + c.Reason + ")"
	switch c.Port {
	case "":
		return ": " + what + " is dropped at " + from + end
	case to:
		return end
	}
	return ": not " + c.Port + end
}

// clause turns a sentence into a part of one.
func clause(sentence string) string {
	first, size := utf8.DecodeRuneInString(sentence)
	second, _ := utf8.DecodeRuneInString(sentence[size:])
	if unicode.IsUpper(first) && !unicode.IsUpper(second) && !strings.HasPrefix(sentence, "Heddle") {
		sentence = string(unicode.ToLower(first)) + sentence[size:]
	}
	return strings.TrimSuffix(sentence, ".")
}

// framesAnswer says whether frames reach the requested end, or without one anybody.
func framesAnswer(list []diagnose.Frame, from, to string) diagnose.Answer {
	if len(list) == 1 {
		return frameAnswer(&list[0], from, to)
	}
	reached, ends := 0, "are delivered"
	if to != "" {
		ends = "reach " + to
	}
	var reasons []string
	count := map[string]int{}
	var first *diagnose.Cause
	for i := range list {
		if reaches(&list[i], to) {
			reached++
			continue
		}
		why := list[i].Reason
		if c := mainCause(&list[i], to); c != nil {
			why = c.Reason
			if first == nil {
				first = c
			}
		}
		if count[why]++; count[why] == 1 {
			reasons = append(reasons, why)
		}
	}
	a := diagnose.Answer{Verdict: diagnose.Yes, Text: fmt.Sprintf("%d of %d frames %s", reached, len(list), ends)}
	if len(reasons) == 0 {
		return a
	}
	a.Verdict = diagnose.No
	for i, why := range reasons {
		reasons[i] = fmt.Sprintf("%d %s", count[why], why)
	}
	a.Text += "; the others do not: " + known.List(reasons)
	if first != nil {
		a.Reason, a.Fix = first.Reason, fixOf(first)
	}
	return a
}

func frameAnswer(f *diagnose.Frame, from, to string) diagnose.Answer {
	c := mainCause(f, to)
	if reaches(f, to) {
		a := diagnose.Answer{Verdict: diagnose.Yes, Text: "the frame is delivered to " + receivers(f)}
		if to != "" {
			a.Text = from + " reaches " + to + ": " + handed(f, to)
		}
		if c != nil && to == "" {
			a.Text += "; not all that it is for" + strings.Replace(because(c, "a copy", from, ""), "dropped",
				"refused", 1)
		}
		return a
	}
	a := diagnose.Answer{Verdict: diagnose.No, Text: "nobody gets the frame"}
	if to != "" {
		a.Text = from + " does not reach " + to
	}
	if c != nil {
		a.Text += because(c, "the frame", from, to)
		a.Reason, a.Fix = c.Reason, fixOf(c)
	}
	return a
}

// reaches reports whether a frame reaches an end; "" is anybody.
func reaches(f *diagnose.Frame, to string) bool {
	return f.Delivered && (to == "" || handed(f, to) != "")
}

// handed describes what is delivered to an end, "" for nothing.
func handed(f *diagnose.Frame, to string) string {
	for _, c := range f.Copies {
		if c.To == to && c.Kind != diagnose.ToHost {
			return fmt.Sprintf("it gets the frame, %s, %d bytes", c.Tag, c.Length)
		}
	}
	return ""
}

func receivers(f *diagnose.Frame) string {
	names := make([]string, 0, len(f.Copies))
	for _, c := range f.Copies {
		switch c.Kind {
		case diagnose.ToHost:
			names = append(names, "the host's own stack behind "+c.To)
		case diagnose.ToUplink:
			how := c.Tag
			if len(c.Outer) > 0 {
				how = c.Packets(3)
			}
			names = append(names, c.To+" ("+how+")")
		default:
			names = append(names, c.To)
		}
	}
	return known.List(names)
}

// mainCause returns why an end, or without one anybody, does not get the frame. A copy that is refused by design while
// others get the frame is no cause.
func mainCause(f *diagnose.Frame, to string) *diagnose.Cause {
	for i := range f.Causes {
		c := &f.Causes[i]
		switch {
		case to != "" && c.Port != "" && c.Port != to:
		case f.Delivered && to == "" && leftOut(c.Reason):
		default:
			return c
		}
	}
	return nil
}

// leftOut reports whether a copy of a flooded frame is refused by design, so that the receiver does not need it.
func leftOut(reason string) bool {
	switch reason {
	case abi.ReasonReversePath.String(), abi.ReasonReflected.String(), abi.ReasonReceiverWaiting.String(),
		abi.ReasonGuestElsewhere.String(), abi.ReasonReceiverDown.String(), abi.ReasonReceiverBlocked.String():
		return true
	}
	return false
}

// fixOf returns in a few words what changes a cause; "" if nothing does or should.
func fixOf(c *diagnose.Cause) string {
	switch {
	case strings.HasPrefix(c.Change, "Nothing"):
		return ""
	case c.Edit != nil:
		return "set " + c.Edit.Set + " in " + c.Edit.Object()
	case shows(c.Command):
		return clause(c.Change)
	}
	return c.Command
}

// shows reports whether a command only shows something.
func shows(command string) bool {
	words := strings.Fields(command)
	return len(words) > 1 && words[0] == "heddle" &&
		(words[1] == "stats" || len(words) > 2 && slices.Contains([]string{"show", "list"}, words[2]))
}
