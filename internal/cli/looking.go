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

// Looking gives a command that looks the flags by which it asks hosts by way of a controller: one of them, or all. It
// returns what the command asks then; the target itself goes on to be of this machine alone.
func (t *Target) Looking(d Deps, c *cobra.Command) *Target {
	l := &Target{from: t, Set: c.Flags(), getenv: d.Getenv}
	l.Set.StringVar(&l.Controller, "controller", d.Getenv("HEDDLE_CONTROLLER"),
		"ask the hosts of the cluster of this controller (environment HEDDLE_CONTROLLER)")
	l.Set.StringVar(&l.context, "context", d.Getenv("HEDDLE_CONTEXT"),
		"ask the hosts of the cluster of this context (heddle context list; environment HEDDLE_CONTEXT)")
	l.Set.StringVar(&l.Host, "host", "", "ask this host alone, by way of the controller")
	return l
}

// Fleet is the controller that hosts are asked by way of; nil where this machine's agent is asked.
func (t *Target) Fleet() (*api.Fleet, error) {
	if t.Set == nil {
		return nil, nil
	}
	for _, flag := range []string{"agent", "run-dir"} {
		switch {
		case !t.Set.Changed(flag):
		case t.Set.Changed("controller"), t.Set.Changed("context"), t.Host != "":
			return nil, Usagef("--%s is an agent of this machine: leave out --controller and --host", flag)
		default:
			return nil, nil
		}
	}
	if t.Controller == "" && t.context == "" && t.Host == "" {
		return nil, nil
	}
	return t.Controllers().Client()
}

// Controllers is the cluster whose hosts are asked.
func (t *Target) Controllers() *FleetTarget {
	return &FleetTarget{Address: t.Controller, Context: t.context, Otherwise: DefaultController, Getenv: t.getenv}
}

// Everywhere says that all hosts are asked.
func (t *Target) Everywhere() (bool, error) {
	f, err := t.Fleet()
	return f != nil && t.Host == "", err
}

// On is the target of one of the hosts.
func (t *Target) On(host string) *Target {
	one := *t
	one.Host = host
	return &one
}

// Said is what one host answers.
type Said[T any] struct {
	Host   string
	Answer T
}

// Absent are hosts that did not answer, with why.
type Absent struct {
	Hosts []api.FleetHost
	why   []error
	first error // that a name is on no host, as the first host says it
	// Unreachable are controllers that do not answer, stale why the list of hosts may be old; "" where it is current.
	Unreachable []string
	Stale       string
}

// AskHosts asks all hosts of a cluster the same, at the same time; f is given the target of each. A host that does not
// answer is no error: report names it. A name that some hosts do not have is one only where none has it.
func AskHosts[T any](c *cobra.Command, t *Target, f func(*Target) (T, error)) ([]Said[T], *Absent, error) {
	fleet, err := t.Fleet()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(c.Context(), CallTimeout)
	hosts, err := fleet.Hosts(ctx)
	cancel()
	if err != nil {
		return nil, nil, err
	}
	answers, errs := make([]T, len(hosts.Hosts)), make([]error, len(hosts.Hosts))
	var g errgroup.Group
	g.SetLimit(askedAtOnce)
	slow := &stragglers{patience: hostPatience + t.Patience}
	for i, h := range hosts.Hosts {
		if h.State == api.HostDisconnected && !justNow(h.Since) {
			errs[i] = &api.AwayError{Host: h.Name, Why: "it is not connected to a controller"}
			continue
		}
		g.Go(func() error {
			one := t.On(h.Name)
			var done func(error) error
			one.Within, done = slow.begin(c.Context(), h.Name)
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
		away.Unreachable, away.Stale = hosts.Unreachable, hosts.Stale
	}
	return list, away, err
}

// sortOut tells answers from faults.
func sortOut[T any](hosts []api.FleetHost, answers []T, errs []error) (list []Said[T], away *Absent, err error) {
	away = &Absent{}
	for i, h := range hosts {
		var usage *UsageError
		switch err := errs[i]; {
		case err == nil:
			list = append(list, Said[T]{h.Name, answers[i]})
		case errors.As(err, &usage), errors.Is(err, api.ErrNoController):
			return nil, nil, err
		case IsMissing(err):
			if away.first == nil {
				away.first = err
			}
		default:
			away.Hosts, away.why = append(away.Hosts, h), append(away.why, err)
		}
	}
	if len(list) == 0 && away.first != nil {
		return nil, away, away.first
	}
	return list, away, nil
}

// IsMissing says that an error is about a name that a host does not have.
func IsMissing(err error) bool {
	var answer *api.Error
	var here *MissingError
	return errors.As(err, &here) || errors.As(err, &answer) && answer.Kind == api.NotFound
}

// MissingError says that nothing has a name.
type MissingError struct{ Text string }

func (e *MissingError) Error() string { return e.Text }

// Only forgets the hosts that nobody asks about.
func (a *Absent) Only(wanted func(host string) bool) {
	hosts, why := a.Hosts, a.why
	a.Hosts, a.why = nil, nil
	for i, h := range hosts {
		if wanted(h.Name) {
			a.Hosts, a.why = append(a.Hosts, h), append(a.why, why[i])
		}
	}
}

// Report names the hosts that did not answer, and is the error that gives the command's exit status.
func (a *Absent) Report(d Deps) error {
	for i, h := range a.Hosts {
		text := a.why[i].Error()
		if !strings.Contains(text, h.Name) {
			text = "host " + h.Name + ": " + text
		}
		fmt.Fprintf(d.Stderr, "heddle: %s\n", printable.Text(text))
	}
	if len(a.Hosts) > 0 {
		return &SilentError{Status: ExitFailure}
	}
	return nil
}

// Hosted is an object of a host: in JSON, the object with the host's name.
type Hosted[T any] struct {
	Host string
	Of   T
}

// MarshalJSON puts the host first.
func (h Hosted[T]) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(h.Of)
	if err != nil {
		return nil, err
	}
	name, err := json.Marshal(h.Host)
	if err != nil || len(b) < 2 || b[0] != '{' {
		return b, errors.Join(err, fmt.Errorf("%T is no object", h.Of))
	}
	out := append([]byte(`{"host":`), name...)
	if string(b) != "{}" {
		out = append(out, ',')
	}
	return append(out, b[1:]...), nil
}

// OfHosts returns the objects of all answers, never nil.
func OfHosts[T any](list []Said[[]T]) []Hosted[T] {
	all := []Hosted[T]{}
	for _, s := range list {
		for _, v := range s.Answer {
			all = append(all, Hosted[T]{s.Host, v})
		}
	}
	return all
}

// WithHosts gives a table without rows a first column for the host.
func (t *Table) WithHosts() {
	shifted := func(of map[int]bool) map[int]bool {
		out := map[int]bool{}
		for c, is := range of {
			out[c+1] = is
		}
		return out
	}
	least := map[int]int{}
	for c, n := range t.Least {
		least[c+1] = n
	}
	t.Head = append([]string{"HOST"}, t.Head...)
	t.Right, t.Keep, t.Names, t.Hidden, t.Least = shifted(t.Right), shifted(t.Keep), shifted(t.Names),
		shifted(t.Hidden), least
	t.Names[0] = true
	if paint := t.Paint; paint != nil {
		t.Paint = func(c int, text, padded string) string {
			if c == 0 {
				return padded
			}
			return paint(c-1, text, padded)
		}
	}
}

// Add takes in that a host does not answer.
func (a *Absent) Add(host string, why error) {
	a.Hosts, a.why = append(a.Hosts, api.FleetHost{Name: host}), append(a.why, why)
}
