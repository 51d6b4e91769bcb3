package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"heddle/internal/api"
	"heddle/internal/spec/printable"
)

// askedAtOnce is how many hosts are asked at the same time.
const askedAtOnce = 32

// looking gives a command that looks the flags by which it asks hosts by way of a controller: one of them, or all. It
// returns what the command asks then; the target itself goes on to be of this machine alone.
func (t *target) looking(d Deps, c *cobra.Command) *target {
	l := &target{from: t, set: c.Flags(), getenv: d.Getenv}
	l.set.StringVar(&l.controller, "controller", d.Getenv("HEDDLE_CONTROLLER"),
		"ask the hosts of the cluster of this controller (environment HEDDLE_CONTROLLER)")
	l.set.StringVar(&l.context, "context", d.Getenv("HEDDLE_CONTEXT"),
		"ask the hosts of the cluster of this context (heddle context list; environment HEDDLE_CONTEXT)")
	l.set.StringVar(&l.host, "host", "", "ask this host alone, by way of the controller")
	return l
}

// fleet is the controller that hosts are asked by way of; nil where this machine's agent is asked.
func (t *target) fleet() (*api.Fleet, error) {
	if t.set == nil {
		return nil, nil
	}
	for _, flag := range []string{"agent", "run-dir"} {
		switch {
		case !t.set.Changed(flag):
		case t.set.Changed("controller"), t.set.Changed("context"), t.host != "":
			return nil, usagef("--%s is an agent of this machine: leave out --controller and --host", flag)
		default:
			return nil, nil
		}
	}
	if t.controller == "" && t.context == "" && t.host == "" {
		return nil, nil
	}
	return t.controllers().client()
}

// controllers is the cluster whose hosts are asked.
func (t *target) controllers() *fleetTarget {
	return &fleetTarget{address: t.controller, context: t.context, otherwise: defaultController, getenv: t.getenv}
}

// everywhere says that all hosts are asked.
func (t *target) everywhere() (bool, error) {
	f, err := t.fleet()
	return f != nil && t.host == "", err
}

// on is the target of one of the hosts.
func (t *target) on(host string) *target {
	one := *t
	one.host = host
	return &one
}

// said is what one host answers.
type said[T any] struct {
	host   string
	answer T
}

// absent are hosts that did not answer, with why.
type absent struct {
	hosts []api.FleetHost
	why   []error
	first error // that a name is on no host, as the first host says it
	// unreachable are controllers that do not answer, stale why the list of hosts may be old; "" where it is current.
	unreachable []string
	stale       string
}

// askHosts asks all hosts of a cluster the same, at the same time; f is given the target of each. A host that does not
// answer is no error: report names it. A name that some hosts do not have is one only where none has it.
func askHosts[T any](c *cobra.Command, t *target, f func(*target) (T, error)) ([]said[T], *absent, error) {
	fleet, err := t.fleet()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(c.Context(), callTimeout)
	hosts, err := fleet.Hosts(ctx)
	cancel()
	if err != nil {
		return nil, nil, err
	}
	answers, errs := make([]T, len(hosts.Hosts)), make([]error, len(hosts.Hosts))
	var g errgroup.Group
	g.SetLimit(askedAtOnce)
	slow := &stragglers{patience: hostPatience + t.patience}
	for i, h := range hosts.Hosts {
		if h.State == api.HostDisconnected && !justNow(h.Since) {
			errs[i] = &api.AwayError{Host: h.Name, Why: "it is not connected to a controller"}
			continue
		}
		g.Go(func() error {
			one := t.on(h.Name)
			var done func(error) error
			one.within, done = slow.begin(c.Context(), h.Name)
			answers[i], errs[i] = f(one)
			errs[i] = done(errs[i])
			return nil
		})
	}
	_ = g.Wait()
	if c.Context().Err() != nil {
		return nil, nil, c.Context().Err()
	}
	list, away, err := sortOut(hosts.Hosts, answers, errs)
	if away != nil {
		away.unreachable, away.stale = hosts.Unreachable, hosts.Stale
	}
	return list, away, err
}

// sortOut tells answers from faults.
func sortOut[T any](hosts []api.FleetHost, answers []T, errs []error) (list []said[T], away *absent, err error) {
	away = &absent{}
	for i, h := range hosts {
		var usage *UsageError
		switch err := errs[i]; {
		case err == nil:
			list = append(list, said[T]{h.Name, answers[i]})
		case errors.As(err, &usage), errors.Is(err, api.ErrNoController):
			return nil, nil, err
		case isMissing(err):
			if away.first == nil {
				away.first = err
			}
		default:
			away.hosts, away.why = append(away.hosts, h), append(away.why, err)
		}
	}
	if len(list) == 0 && away.first != nil {
		return nil, away, away.first
	}
	return list, away, nil
}

// isMissing says that an error is about a name that a host does not have.
func isMissing(err error) bool {
	var answer *api.Error
	var here *missingError
	return errors.As(err, &here) || errors.As(err, &answer) && answer.Kind == api.NotFound
}

// missingError says that nothing has a name.
type missingError struct{ text string }

func (e *missingError) Error() string { return e.text }

// only forgets the hosts that nobody asks about.
func (a *absent) only(wanted func(host string) bool) {
	hosts, why := a.hosts, a.why
	a.hosts, a.why = nil, nil
	for i, h := range hosts {
		if wanted(h.Name) {
			a.hosts, a.why = append(a.hosts, h), append(a.why, why[i])
		}
	}
}

// report names the hosts that did not answer, and is the error that gives the command's exit status.
func (a *absent) report(d Deps) error {
	for i, h := range a.hosts {
		text := a.why[i].Error()
		if !strings.Contains(text, h.Name) {
			text = "host " + h.Name + ": " + text
		}
		fmt.Fprintf(d.Stderr, "heddle: %s\n", printable.Text(text))
	}
	if len(a.hosts) > 0 {
		return &SilentError{Status: ExitFailure}
	}
	return nil
}

// hosted is an object of a host: in JSON, the object with the host's name.
type hosted[T any] struct {
	host string
	of   T
}

// MarshalJSON puts the host first.
func (h hosted[T]) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(h.of)
	if err != nil {
		return nil, err
	}
	name, err := json.Marshal(h.host)
	if err != nil || len(b) < 2 || b[0] != '{' {
		return b, errors.Join(err, fmt.Errorf("%T is no object", h.of))
	}
	out := append([]byte(`{"host":`), name...)
	if string(b) != "{}" {
		out = append(out, ',')
	}
	return append(out, b[1:]...), nil
}

// ofHosts returns the objects of all answers, never nil.
func ofHosts[T any](list []said[[]T]) []hosted[T] {
	all := []hosted[T]{}
	for _, s := range list {
		for _, v := range s.answer {
			all = append(all, hosted[T]{s.host, v})
		}
	}
	return all
}

// withHosts gives a table without rows a first column for the host.
func (t *table) withHosts() {
	shifted := func(of map[int]bool) map[int]bool {
		out := map[int]bool{}
		for c, is := range of {
			out[c+1] = is
		}
		return out
	}
	least := map[int]int{}
	for c, n := range t.least {
		least[c+1] = n
	}
	t.head = append([]string{"HOST"}, t.head...)
	t.right, t.keep, t.names, t.hidden, t.least = shifted(t.right), shifted(t.keep), shifted(t.names),
		shifted(t.hidden), least
	t.names[0] = true
	if paint := t.paint; paint != nil {
		t.paint = func(c int, text, padded string) string {
			if c == 0 {
				return padded
			}
			return paint(c-1, text, padded)
		}
	}
}
