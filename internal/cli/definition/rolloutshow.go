package definition

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

// mostStageHosts is how many hosts of a stage are named that have or are to have the change; -o json has them all.
const mostStageHosts = 10

// rolloutLine says in one line how a rollout stands.
func rolloutLine(r *api.Rollout) string {
	line := fmt.Sprintf("rollout %s is %s", r.ID, r.State)
	switch {
	case r.State == api.RolloutRunning && r.Begun == 0:
		line += ": the hosts are watched as they are"
	case r.Begun > 0 && r.Begun <= len(r.Stages):
		line += fmt.Sprintf(": stage %d of %d (%s)", r.Begun, len(r.Stages), r.Stages[r.Begun-1].Stage)
	}
	if changed, of := rolloutCount(r); of > 0 {
		line += fmt.Sprintf(", %d of %s changed", changed, cli.HowMany(of, "host"))
	}
	if r.Left > 0 {
		line += fmt.Sprintf(", watched for %s yet", r.Left.Round(time.Second))
	}
	if r.State == api.RolloutRunning && r.Driver == "" {
		line += "; no controller drives it at present"
	}
	if r.Note != "" {
		line += "; " + printable.Text(r.Note)
	}
	return line
}

// rolloutCount is how many hosts have the change, of an open rollout, and how many there are.
func rolloutCount(r *api.Rollout) (changed, of int) {
	for _, s := range r.Stages {
		for _, h := range s.Hosts {
			if of++; h.State == "changed" {
				changed++
			}
		}
	}
	return changed, of
}

// printRollout prints all of a rollout.
func printRollout(w io.Writer, r *api.Rollout) error {
	why := ""
	if r.Message != "" {
		why = ": " + r.Message
	}
	lines := []string{rolloutLine(r), fmt.Sprintf("revision %d, made on %d by %s at %s%s", r.Revision, r.Base,
		printable.Text(r.Who), r.Started.Local().Format(time.DateTime), printable.Text(why)),
		fmt.Sprintf("switches: %s; watched for %s after each stage; on a finding: %s", rolloutSwitches(r), r.Wait,
			r.Halt)}
	for i, s := range r.Stages {
		lines = append(lines, stageLines(r, i, s)...)
	}
	for _, f := range r.Found {
		lines = append(lines, "found: "+findingLine(f))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func findingLine(f api.RolloutFinding) string {
	if f.Host == "" {
		return f.What
	}
	return f.Host + ": " + f.What
}

// stageLines are a stage with its hosts.
func stageLines(r *api.Rollout, i int, s api.RolloutStage) (lines []string) {
	state := "has not begun"
	if i < r.Begun {
		state = "has begun"
	}
	line := fmt.Sprintf("stage %d (%s) %s: %s", i+1, s.Stage, state, cli.HowMany(s.Count, "host"))
	var names []string
	for _, h := range s.Hosts {
		if h.State == "changed" || h.State == "unchanged" {
			names = append(names, h.Name)
			continue
		}
		text := h.State
		if len(h.Problems) > 0 {
			text += ": " + strings.Join(h.Problems, "; ")
		}
		lines = append(lines, "  "+h.Name+" is "+text)
	}
	if more := len(names) - mostStageHosts; more > 0 {
		names = append(names[:mostStageHosts], fmt.Sprintf("and %d more", more))
	}
	if len(names) > 0 {
		line += " (" + strings.Join(names, ", ") + ")"
	}
	return append([]string{line}, lines...)
}

// followEvery is how often a rollout is looked at that somebody follows.
const followEvery = 500 * time.Millisecond

// followRollout shows how a rollout goes until it has ended or halted. Who leaves, by Ctrl-C, is told that it goes on.
func followRollout(d cli.Deps, c *cobra.Command, t *cli.FleetTarget, o *cli.Output, id string) error {
	f := &rolloutFollower{d: d}
	for begun := false; ; {
		r, err := askRollout(c, t, id)
		switch {
		case err == nil:
			begun, id = true, r.ID
			if r.State != api.RolloutRunning && r.State != api.RolloutTakingBack {
				f.clear()
				return errors.Join(o.Print(d, r, func(w io.Writer) error { return printRollout(w, r) }), rolloutEnd(r))
			}
			f.show(fmt.Sprint(r.State, r.Begun), rolloutLine(r))
		case !begun:
			return err
		case c.Context().Err() == nil: // a controller may be away for a moment
			f.show("away", "rollout "+id+": asking again, since "+err.Error())
		}
		select {
		case <-time.After(followEvery):
		case <-c.Context().Done():
			f.clear()
			return fmt.Errorf("rollout %s goes on without this command: \"heddle rollout show %s --follow\" follows "+
				"it again, \"heddle rollout pause %s\" keeps the next stage from beginning", id, id, id)
		}
	}
}

// rolloutFollower shows lines one over the other on a terminal; elsewhere one for each step.
type rolloutFollower struct {
	d     cli.Deps
	step  string
	shown bool
}

// show shows a line. On a terminal it is cut to one row: what is longer could not be overwritten.
func (f *rolloutFollower) show(step, line string) {
	switch {
	case f.d.Watched:
		fmt.Fprint(f.d.Stderr, cli.ClearLine+cutTo(line, f.d.TextWidth()-1))
		f.shown = true
	case step != f.step:
		fmt.Fprintln(f.d.Stderr, line)
	}
	f.step = step
}

func (f *rolloutFollower) clear() {
	if f.shown {
		fmt.Fprint(f.d.Stderr, cli.ClearLine)
	}
	f.shown = false
}

// cutTo is a line of no more than so many characters.
func cutTo(line string, most int) string {
	if text := []rune(line); len(text) > most {
		return string(text[:most-1]) + "…"
	}
	return line
}

// rolloutEnd is the error of a rollout with which not all hosts get the change.
func rolloutEnd(r *api.Rollout) error {
	switch r.State {
	case api.RolloutDone:
		return nil
	case api.RolloutHalted:
		return fmt.Errorf("rollout %s has halted: look at the hosts, then take the change back (heddle rollout abort "+
			"%s) or go on (heddle rollout resume %s)", r.ID, r.ID, r.ID)
	}
	return fmt.Errorf("rollout %s is %s", r.ID, r.State)
}

// stagedLines say which rollout a change began, or would begin.
func stagedLines(out *api.Defined, dry bool) (lines []string) {
	for _, id := range out.Superseded {
		word := "superseded"
		if dry {
			word = "would be superseded"
		}
		lines = append(lines, "rollout "+id+" "+word)
	}
	r := out.Rollout
	switch {
	case r == nil:
		return lines
	case len(out.Changes) == 0:
		return append(lines, "the definition is as it is asked for, and "+rolloutLine(r))
	}
	for i, s := range r.Stages {
		lines = append(lines, stageLines(r, i, s)...)
	}
	if dry {
		return append(lines, fmt.Sprintf("hosts would be watched for %s before the first stage, and for %s after each",
			r.Watch, r.Wait))
	}
	return append(lines, fmt.Sprintf("rollout %s has begun: heddle rollout show %s --follow", r.ID, r.ID))
}
