package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

// fleetAdvice is the advice of all hosts of a cluster.
type fleetAdvice struct {
	// Hosts is how many have answered, Away are the names of those that have not.
	Hosts int      `json:"hosts"`
	Away  []string `json:"away,omitempty"`
	// Unreachable are controllers that do not answer, Stale says why the list of hosts may be old.
	Unreachable []string `json:"unreachable,omitempty"`
	Stale       string   `json:"stale,omitempty"`
	// Wrong is what the controller finds wrong with the cluster.
	Wrong []api.HealthFinding `json:"wrong,omitempty"`
	// MeasuredSeconds and SinceSeconds are as in an advice, Rules is how many each host has examined. Older, Ports,
	// Uplinks and More are sums.
	MeasuredSeconds float64                   `json:"measuredSeconds"`
	SinceSeconds    float64                   `json:"sinceSeconds,omitzero"`
	Older           int                       `json:"older"`
	Rules           int                       `json:"rules"`
	Ports           int                       `json:"ports"`
	Uplinks         int                       `json:"uplinks"`
	Findings        []cli.Hosted[api.Finding] `json:"findings"`
	More            map[string]int            `json:"more,omitempty"`
}

// adviseAll is "heddle advise" of all hosts.
func adviseAll(c *cobra.Command, d cli.Deps, t *cli.Target, o *cli.Output, q api.AdviseRequest) error {
	all := *t
	all.Patience = q.For
	wrong, err := faultsOf(c, t)
	if err != nil {
		return err
	}
	list, away, err := cli.AskHosts(c, &all, func(t *cli.Target) (*api.Advice, error) { return advice(c, t, q) })
	if err != nil {
		return err
	}
	a := joinAdvice(list)
	a.Unreachable, a.Stale = away.Unreachable, away.Stale
	a.Wrong = wrong()
	for _, h := range away.Hosts {
		a.Away = append(a.Away, h.Name)
	}
	err = o.Print(d, a, func(w io.Writer) error { return writeFleetAdvice(w, d, a, time.Now()) })
	ill := slices.ContainsFunc(list, func(s cli.Said[*api.Advice]) bool { return !s.Answer.Healthy() })
	if ill || !a.whole() || len(a.Wrong) > 0 {
		err = errors.Join(err, &cli.SilentError{Status: cli.ExitFailure})
	}
	return errors.Join(err, away.Report(d))
}

// faultsOf asks for those of the cluster while its hosts are asked; what it returns waits for them.
func faultsOf(c *cobra.Command, t *cli.Target) (func() []api.HealthFinding, error) {
	f, err := t.Fleet()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.Context(), cli.CallTimeout)
	wrong := cli.AskFaults(ctx, f, true)
	return func() []api.HealthFinding {
		defer cancel()
		return wrong()
	}, nil
}

// whole reports whether all hosts have answered, by controllers of which none is away.
func (a *fleetAdvice) whole() bool { return len(a.Away)+len(a.Unreachable) == 0 && a.Stale == "" }

// found says how many findings there are. None of a part of the cluster is no word about the rest.
func (a *fleetAdvice) found() string {
	switch {
	case len(a.Findings) == 0 && !a.whole():
		return "Not the whole cluster was looked at; nothing was found in what was"
	case len(a.Findings) == 0 && len(a.Wrong) > 0:
		return "Nothing was found on the hosts; what is wrong with the cluster is below"
	}
	return findingsFound(len(a.Findings))
}

// joinAdvice is what hosts say together: what is wrong first, then by rule, in the order in which the hosts say them.
func joinAdvice(list []cli.Said[*api.Advice]) *fleetAdvice {
	a := &fleetAdvice{Hosts: len(list), Findings: []cli.Hosted[api.Finding]{}}
	order := map[string]int{}
	for _, s := range list {
		of := s.Answer
		a.MeasuredSeconds = max(a.MeasuredSeconds, of.MeasuredSeconds)
		a.SinceSeconds, a.Rules = max(a.SinceSeconds, of.SinceSeconds), max(a.Rules, of.Rules)
		a.Older, a.Ports, a.Uplinks = a.Older+of.Older, a.Ports+of.Ports, a.Uplinks+of.Uplinks
		for i := range of.Findings {
			f := of.Findings[i]
			if _, known := order[f.Rule]; !known {
				order[f.Rule] = len(order)
			}
			a.Findings = append(a.Findings, cli.Hosted[api.Finding]{Host: s.Host, Of: f})
		}
		for rule, n := range of.More {
			if a.More == nil {
				a.More = map[string]int{}
			}
			a.More[rule] += n
		}
	}
	slices.SortStableFunc(a.Findings, func(x, y cli.Hosted[api.Finding]) int {
		return cmp.Or(byLevel(x.Of.Level, y.Of.Level), cmp.Compare(order[x.Of.Rule], order[y.Of.Rule]))
	})
	return a
}

// byLevel orders what is wrong before what is only worth knowing.
func byLevel(a, b api.FindingLevel) int {
	switch {
	case a == b:
		return 0
	case a == api.FindingWrong:
		return -1
	}
	return 1
}

// alike is what findings of several hosts have in common that are shown as one.
type alike struct {
	level                             api.FindingLevel
	rule, sw, object, why, change, do string
}

// together are the findings of several hosts that say the same, but for what was measured.
func together(findings []cli.Hosted[api.Finding]) (groups [][]cli.Hosted[api.Finding]) {
	at := map[alike]int{}
	for _, h := range findings {
		k := alike{h.Of.Level, h.Of.Rule, h.Of.Switch, h.Of.Object(), h.Of.Why, h.Of.Change, h.Of.Command}
		i, known := at[k]
		if !known {
			i = len(groups)
			at[k], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], h)
	}
	return groups
}

// writeFleetAdvice writes the findings of all hosts for people.
func writeFleetAdvice(w io.Writer, d cli.Deps, a *fleetAdvice, now time.Time) error {
	var b strings.Builder
	for _, g := range together(a.Findings) {
		writeAlike(&b, d, g, now)
	}
	writeMore(&b, a.More)
	fmt.Fprintf(&b, "%s. Checked %s on %s and %s of %s.\n", a.found(),
		printable.Count(a.Rules, "rule", "rules"), printable.Count(a.Ports, "port", "ports"),
		printable.Count(a.Uplinks, "uplink", "uplinks"), printable.Count(a.Hosts, "host", "hosts"))
	if len(a.Findings) > 0 {
		b.WriteString("The commands are those of the hosts that are named.\n")
	}
	writeBounds(&b, a.MeasuredSeconds, a.SinceSeconds, a.Older)
	if err := errors.Join(cli.PrintFleetNotes(&b, a.Unreachable, a.Stale), cli.PrintFaults(&b, a.Wrong)); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}
