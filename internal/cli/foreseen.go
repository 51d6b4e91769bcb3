package cli

import (
	"fmt"
	"strings"
	"time"

	"heddle/internal/api"
	"heddle/internal/diagnose"
	times "heddle/internal/spec/period"
	"heddle/internal/spec/printable"
)

// mostForeseen is how many losses are shown; -o json has all that are listed.
const mostForeseen = 20

// foreseenLines say what a change would newly lose on a host.
func foreseenLines(d Deps, f *diagnose.Foreseen) (lines []string) {
	if f == nil {
		return nil
	}
	for i, l := range f.Losses {
		if i == mostForeseen {
			break
		}
		lines = append(lines, lossLines(d, "", &l)...)
	}
	lines = append(lines, moreLosses(len(f.Losses), f.More)...)
	return append(lines, lookedAt(f.Looked, f.Left, f.Counted, len(f.Losses))...)
}

// FleetForeseenLines say it of all hosts.
func FleetForeseenLines(d Deps, f *api.FleetForeseen) (lines []string) {
	if f == nil || f.Hosts+len(f.Unasked) == 0 {
		return nil
	}
	for i, l := range f.Losses {
		if i == mostForeseen {
			break
		}
		lines = append(lines, lossLines(d, l.Host, &l.Loss)...)
	}
	lines = append(lines, moreLosses(len(f.Losses), f.More)...)
	lines = append(lines, lookedAt(f.Looked, f.Left, f.Counted, len(f.Losses))...)
	for _, u := range f.Unasked {
		lines = append(lines, fmt.Sprintf("host %s does not say what it would drop: %s", printable.Text(u.Host),
			printable.Text(strings.Join(u.Problems, "; "))))
	}
	if f.UnaskedMore > 0 {
		lines = append(lines, fmt.Sprintf("nor do %d hosts more", f.UnaskedMore))
	}
	return lines
}

func moreLosses(listed, more int) []string {
	if more += max(0, listed-mostForeseen); more > 0 {
		return []string{fmt.Sprintf("and %d senders more (-o json has up to %d)", more, listed)}
	}
	return nil
}

// lookedAt says how much was looked at.
func lookedAt(looked, left, counted, losses int) (lines []string) {
	switch {
	case looked == 0 && left == 0:
		lines = append(lines, "what ports send: nothing is known of the last hour, so nothing was compared")
	case losses == 0:
		lines = append(lines, fmt.Sprintf("what ports sent in the last hour would all pass (%s looked at)",
			HowMany(looked, "sender")))
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("%s more, with fewer frames, were not looked at", HowMany(left, "sender")))
	}
	if counted > 0 {
		lines = append(lines, fmt.Sprintf("of %s only the number of frames is known: metered flows or learned MACs "+
			"would tell more", HowMany(counted, "port")))
	}
	return lines
}

// lossLines are one loss: what, why, and what would keep the frames.
func lossLines(d Deps, host string, l *diagnose.Loss) []string {
	at := printable.Text(l.Port)
	if host != "" {
		at = printable.Text(host) + "/" + at
	}
	does := "would drop"
	if l.Perhaps {
		does = "might drop"
	}
	if l.To != "" {
		does = "would not reach " + printable.Text(l.To)
	}
	from := l.MAC.String()
	if l.Address.IsValid() && !l.Address.IsUnspecified() { // a station without an address asks whether one is free
		from += " " + l.Address.String()
	}
	lines := []string{d.Coloured(Red, does) + fmt.Sprintf(": port %s (%s/%s), from %s, %s: %s, %s", at,
		printable.Text(l.Switch), printable.Text(l.PortGroup), from, l.VLAN.Words(), l.Cause.Reason, framesOf(l))}
	why := l.Cause.Why
	if l.Cause.Setting != nil {
		why += fmt.Sprintf(" (%s: %s, set at %s)", l.Cause.Policy, l.Cause.Value, l.Cause.From)
	}
	lines = append(lines, "  why: "+printable.Text(why))
	if keep := keeping(&l.Cause); keep != "" {
		lines = append(lines, "  to keep them: "+printable.Text(keep))
	}
	return lines
}

// framesOf is how many frames are meant.
func framesOf(l *diagnose.Loss) string {
	text := printable.Count(l.Frames, "frame", "frames")
	if l.OfPort {
		text = "of " + text + " of the port"
	}
	switch during := time.Duration(l.Seconds * float64(time.Second)); {
	case l.Seconds == 0:
		return text + " since it was connected"
	case during >= time.Hour-time.Minute && during < time.Hour+10*time.Minute:
		return text + " in the last hour"
	case during < time.Second:
		return text + " in the last second"
	default:
		return text + " in the last " + times.Age(during)
	}
}

// keeping is what would keep the frames: what to write where.
func keeping(c *diagnose.Cause) string {
	if c.Edit != nil && c.Edit.Set != "" {
		return fmt.Sprintf("%s at %s", c.Edit.Set, c.Edit.Object())
	}
	return c.Change
}
