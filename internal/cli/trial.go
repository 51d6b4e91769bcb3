package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/host/reach"
)

// windowFlag adds the flag of commands whose change may affect the path to the host's own addresses (S81).
func windowFlag(c *cobra.Command, w *api.Window) {
	c.Flags().DurationVar(&w.ConfirmWithin, "confirm-within", 0,
		"how long a change of the way to this host's own addresses may go unconfirmed, by those who are asked or by "+
			"\"heddle confirm\"; needed where nobody can be asked")
}

// askTried calls the agent for a change. A change that affects the path to the host's own addresses takes as long as
// its trial; on a terminal the trial is shown.
func askTried[T any](d Deps, c *cobra.Command, t *target, w api.Window, f func(context.Context, api.Service) (T,
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
func (t *target) leftTrial(err error) error {
	client, unknown := t.client()
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
		v.Change, left(v.Deadline, time.Now()), askedText(v.Asked))
}

// printTrial says how a change of the path to the host's own addresses is tried.
func printTrial(d Deps, t *api.Trial) {
	if t == nil {
		return
	}
	for _, r := range t.AtRisk {
		d.warn(fmt.Sprintf("it concerns the way to this host's own addresses: %s", r))
	}
	switch {
	case t.State == api.TrialPlanned && t.ReasonCode != "":
		d.warn("it would be refused: " + t.Reason)
	case t.State == api.TrialPlanned && len(t.Asked) > 0:
		fmt.Fprintf(d.Stderr, "it would be tried: it goes back by itself unless these still answer: %s\n",
			askedText(t.Asked))
	case t.State == api.TrialKept:
		fmt.Fprintf(d.Stderr, "it stays; still reached: %s\n", askedText(t.Asked))
	case t.State == api.TrialConfirm:
		fmt.Fprintf(d.Stderr, "confirm within %s, or everything goes back: heddle confirm\n",
			left(t.Deadline, time.Now()))
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
		return fmt.Sprintf("asking the controllers; back in %s without an answer", left(t.Deadline, time.Now()))
	}
	missing := reach.Missing(t.Asked)
	if len(missing) == 0 {
		missing = t.Asked
	}
	return fmt.Sprintf("asking %s; back in %s without an answer", askedText(missing), left(t.Deadline, time.Now()))
}

// printReverted prints, with -o json or yaml, the trial of a change that was undone; the command still returns err.
func (o *output) printReverted(d Deps, err error) error {
	var answer *api.Error
	if o.format == "table" || !errors.As(err, &answer) || answer.Trial == nil {
		return err
	}
	return errors.Join(err, o.print(d, &api.Applied{Changes: []api.Change{}, Trial: answer.Trial}, nil))
}

func newConfirm(d Deps) *cobra.Command {
	t, o := &target{}, &output{}
	c := &cobra.Command{
		Use: "confirm", Short: "Confirm a change that otherwise goes back by itself",
		Long: "Keep a change of the way to this host's own addresses that otherwise goes back by itself: a change " +
			"made with --confirm-within, an adoption (\"heddle host-port adopt\"), or one that a controller sent. If " +
			"those who answered before the change answer again after it, no confirmation is needed.",
		Example: "  heddle apply -f heddle.yaml --confirm-within 2m\n  heddle confirm", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			v, err := ask(c, t, func(ctx context.Context, s api.Service) (*api.Trial, error) {
				return s.ConfirmChange(ctx)
			})
			if isNotFound(err) {
				return confirmAdoption(d, c, t, o, err)
			}
			if err != nil {
				return err
			}
			return o.print(d, v, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s stays\n", v.Change)
				return err
			})
		},
	}
	o.flag(c)
	t.flags(d, c)
	return c
}

// confirmAdoption confirms the adoption that waits for confirmation; if there is none, it returns the error none.
func confirmAdoption(d Deps, c *cobra.Command, t *target, o *output, none error) error {
	a, err := ask(c, t, func(ctx context.Context, s api.Service) (*api.Adoption, error) {
		return s.ConfirmAdoption(ctx, api.HostPortName{})
	})
	if isNotFound(err) {
		return none
	}
	if err != nil {
		return err
	}
	return o.print(d, a, func(w io.Writer) error { return printConfirmed(w, a) })
}
