package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/host/reach"
)

// WindowFlag adds the flag of commands whose change may affect the path to the host's own addresses (S81).
func WindowFlag(c *cobra.Command, w *api.Window) {
	c.Flags().DurationVar(&w.ConfirmWithin, "confirm-within", 0,
		"how long a change of the way to this host's own addresses may go unconfirmed, by those who are asked or by "+
			"\"heddle confirm\"; needed where nobody can be asked")
}

// AskTried calls the agent for a change. A change that affects the path to the host's own addresses takes as long as
// its trial; on a terminal the trial is shown.
func AskTried[T any](d Deps, c *cobra.Command, t *Target, w api.Window, f func(context.Context, api.Service) (T,
	error)) (T, error) {
	v, err := askWithin(d, c, t, attachTimeout+w.ConfirmWithin, f)
	if err != nil && c.Context().Err() != nil {
		err = t.leftTrial(err)
	}
	return v, err
}

// lookBack is how long a command that is interrupted may still ask what happens to its change.
const lookBack = 2 * time.Second

// leftTrial is the error of a command that was interrupted: the agent decides without it whether its change stays.
func (t *Target) leftTrial(err error) error {
	client, unknown := t.Client()
	if unknown != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookBack)
	defer cancel()
	v, unknown := client.Trial(ctx)
	if unknown != nil || v.State != api.TrialAsking {
		return err
	}
	return fmt.Errorf("interrupted; the agent goes on: %q goes back by itself in %s unless these answer: %s (see "+
		"\"heddle events\", or keep it with \"heddle confirm\")",
		v.Change, Left(v.Deadline, time.Now()), askedText(v.Asked))
}

// PrintTrial says how a change of the path to the host's own addresses is tried.
func PrintTrial(d Deps, t *api.Trial) {
	if t == nil {
		return
	}
	for _, r := range t.AtRisk {
		d.Warn(fmt.Sprintf("it concerns the way to this host's own addresses: %s", r))
	}
	switch {
	case t.State == api.TrialPlanned && t.ReasonCode != "":
		d.Warn("it would be refused: " + t.Reason)
	case t.State == api.TrialPlanned && len(t.Asked) > 0:
		fmt.Fprintf(d.Stderr, "it would be tried: it goes back by itself unless these still answer: %s\n",
			askedText(t.Asked))
	case t.State == api.TrialKept:
		fmt.Fprintf(d.Stderr, "it stays; still reached: %s\n", askedText(t.Asked))
	case t.State == api.TrialConfirm:
		fmt.Fprintf(d.Stderr, "confirm within %s, or everything goes back: heddle confirm\n",
			Left(t.Deadline, time.Now()))
	}
}

func askedText(asked []reach.Ask) string {
	var texts []string
	for _, a := range asked {
		texts = append(texts, a.String())
	}
	if len(texts) == 0 {
		return "by the operator's word"
	}
	return strings.Join(texts, ", ")
}

// trialText describes the running trial, for a line on a terminal.
func trialText(t *api.Trial) string {
	if len(t.Asked) == 0 { // a controller wanted the change
		return fmt.Sprintf("asking the controllers; back in %s without an answer", Left(t.Deadline, time.Now()))
	}
	missing := reach.Missing(t.Asked)
	if len(missing) == 0 {
		missing = t.Asked
	}
	return fmt.Sprintf("asking %s; back in %s without an answer", askedText(missing), Left(t.Deadline, time.Now()))
}

// PrintReverted prints, with -o json or yaml, the trial of a change that was undone; the command still returns err.
func (o *Output) PrintReverted(d Deps, err error) error {
	var answer *api.Error
	if o.Format == "table" || !errors.As(err, &answer) || answer.Trial == nil {
		return err
	}
	return errors.Join(err, o.Print(d, &api.Applied{Changes: []api.Change{}, Trial: answer.Trial}, nil))
}

func Left(deadline, now time.Time) time.Duration {
	if deadline.IsZero() {
		return 0
	}
	return max(0, deadline.Sub(now)).Round(time.Second)
}
