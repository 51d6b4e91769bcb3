package definition

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

// changeWay is how hosts make a change of the definition.
type changeWay struct {
	atOnce, exceptAway bool
	lead, patience     time.Duration
}

// leastLead is how long after the decision the instant is, unless somebody says.
const leastLead = time.Second

func (w *changeWay) flags(c *cobra.Command) {
	c.Flags().BoolVar(&w.atOnce, "together", false, "all hosts concerned change at one instant, or none does")
	c.Flags().BoolVar(&w.exceptAway, "except-away", false, "with --together: hosts that are not connected take the "+
		"change when they are back")
	c.Flags().DurationVar(&w.lead, "at", leastLead, "with --together: how long after the decision the instant is at "+
		"least, 1s to 1m")
	c.Flags().DurationVar(&w.patience, "prepare-wait", 10*time.Second, "with --together: how long hosts may take to "+
		"make the change ready, at most 1m")
}

// together is how hosts change at one instant; nil where each changes as soon as it can.
func (w *changeWay) together(c *cobra.Command) (*api.Together, error) {
	if !w.atOnce {
		for _, name := range []string{"except-away", "at", "prepare-wait"} {
			if c.Flags().Changed(name) {
				return nil, cli.Usagef("--%s is for a change that hosts make together: add --together", name)
			}
		}
		return nil, nil
	}
	if w.lead < leastLead || w.lead > time.Minute {
		return nil, cli.Usagef("--at %s: give how long after the decision the hosts change, 1s to 1m", w.lead)
	}
	if w.patience <= 0 || w.patience > time.Minute {
		return nil, cli.Usagef("--prepare-wait %s: give how long hosts may take, at most 1m", w.patience)
	}
	return &api.Together{ExceptAway: w.exceptAway, Lead: w.lead, Patience: w.patience}, nil
}

// togetherLines say what became of a change that hosts made together, or would.
func togetherLines(out *api.Defined, dry bool) (lines []string) {
	t := out.Together
	if t == nil {
		return nil
	}
	if dry {
		lines = append(lines, cli.HowMany(t.Hosts, "host")+" would change together")
		for _, name := range t.Away {
			lines = append(lines, "away: "+name+" is not connected")
		}
		return lines
	}
	line := fmt.Sprintf("%s changed together at %s", cli.HowMany(t.Hosts, "host"),
		t.At.Local().Format("15:04:05.000"))
	if t.Spread > 0 {
		line += fmt.Sprintf(", within %s of each other", shortTime(t.Spread))
	}
	line += fmt.Sprintf(" (announced: %s)", shortTime(t.Announced))
	lines = append(append(lines, line), problemLines("late: ", t.Late)...)
	return append(lines, problemLines("not known: ", t.Unsure)...)
}

// shortTime is a time in three digits or so.
func shortTime(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
