package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/spec/known"
	"heddle/internal/spec/printable"
)

// Wanted is one object that a command shows, by name.
type Wanted[T any] struct {
	Name string
	What string // "uplink"
	Kind string // of several: "uplinks"
	List string // the command that lists them
	// Here finds those of that name on a host; the error says how its objects are called otherwise.
	Here func(s *api.State, name string) ([]Candidate[T], error)
	// Runs is the one to show of several that are one and the same, such as the ports of a guest that moves; -1 for
	// several things. nil: they never are.
	Runs func([]T) int
}

// Candidate is an object with its name.
type Candidate[T any] struct {
	name string
	of   T
}

// located is an object, and the host that has it: "" for the one that was asked.
type located[T any] struct {
	host string
	On   *Target
	Of   T
}

// Object is what is printed in JSON: with the host, where it was looked for on all.
func (l located[T]) Object(v any) any {
	if l.host == "" {
		return v
	}
	return Hosted[any]{l.host, v}
}

// Row is the line with the host.
func (l located[T]) Row() [][2]string {
	if l.host == "" {
		return nil
	}
	return [][2]string{{"host", l.host}}
}

// Locate finds an object on the host that is asked or, where all are asked, on whichever has it. HOST:NAME is that
// host's. Where several are meant the error names them.
func Locate[T any](c *cobra.Command, t *Target, w Wanted[T]) (found located[T], away *Absent, err error) {
	all, err := t.Everywhere()
	if err != nil {
		return found, nil, err
	}
	ask := func(t *Target, name string) (list []Candidate[T], err error) {
		s, err := t.State(c)
		if err != nil {
			return nil, err
		}
		return w.Here(s, name)
	}
	if !all {
		list, err := ask(t, w.Name)
		if err == nil && len(list) > 1 {
			err = Usagef("%s has %d ports: say which, as %s", printable.Text(w.Name), len(list), alternatives("", list))
		}
		if err != nil {
			return found, nil, err
		}
		return located[T]{On: t, Of: list[0].of}, &Absent{}, nil
	}
	host, rest, split := strings.Cut(w.Name, ":")
	lists, away, err := AskHosts(c, t, func(t *Target) ([]Candidate[T], error) {
		if split && t.Host == host {
			return ask(t, rest)
		}
		return ask(t, w.Name)
	})
	if err != nil && IsMissing(err) || err == nil && len(lists) == 0 {
		return found, away, &MissingError{Text: fmt.Sprintf("no host that answers has a %s %s (%s)", w.What,
			printable.Text(w.Name), w.List)}
	}
	if err != nil {
		return found, away, err
	}
	lists = slices.DeleteFunc(lists, func(s Said[[]Candidate[T]]) bool { // HOST:NAME is that host's
		return split && s.Host != host && slices.ContainsFunc(lists, func(o Said[[]Candidate[T]]) bool {
			return o.Host == host
		})
	})
	var names []string
	var several []located[T]
	var of []T
	for _, s := range lists {
		for _, o := range s.Answer {
			found = located[T]{host: s.Host, On: t.On(s.Host), Of: o.of}
			several, of = append(several, found), append(of, o.of)
			names = append(names, s.Host+":"+known.Shown(o.name))
		}
	}
	if len(names) > 1 && w.Runs != nil {
		if i := w.Runs(of); i >= 0 {
			return several[i], away, nil
		}
	}
	if len(names) > 1 {
		return found, away, Usagef("%d %s are called %s: say which, as %s", len(names), w.Kind, printable.Text(w.Name),
			Some(names))
	}
	return found, away, nil
}

// mostAlternatives is how many objects an error names.
const mostAlternatives = 8

func Some(names []string) string {
	if more := len(names) - mostAlternatives; more > 0 {
		return strings.Join(names[:mostAlternatives], " or ") + fmt.Sprintf(" (and %d more)", more)
	}
	return strings.Join(names, " or ")
}

func alternatives[T any](host string, list []Candidate[T]) string {
	var names []string
	for _, o := range list {
		names = append(names, HostPrefix(host)+known.Shown(o.name))
	}
	return Some(names)
}

// With names the hosts that do not answer beside an error: the object may be on one of them.
func (a *Absent) With(d Deps, err error) error {
	if a == nil {
		return err
	}
	_ = a.Report(d)
	return err
}

// PortsNamed finds a port by its name, or by the UUID or the name of its VM.
func PortsNamed(s *api.State, name string) ([]Candidate[api.Port], error) {
	p, err := Pick(s.Ports, PortsOf(s), name, "", func(p api.Port) (string, string) { return p.Switch, p.Name })
	if err == nil {
		return []Candidate[api.Port]{{p.Name, p}}, nil
	}
	if !IsMissing(err) {
		return nil, err
	}
	var list []Candidate[api.Port]
	for _, p := range s.Ports {
		if ofVM(name, p.VM, p.Name) {
			list = append(list, Candidate[api.Port]{p.Name, p})
		}
	}
	if len(list) == 0 {
		return nil, err
	}
	return list, nil
}

// ofVM says that a port is of the VM with that UUID or name: a VM's ports are called VM/ADAPTER.
func ofVM(vm, uuid, port string) bool {
	return uuid != "" && strings.EqualFold(uuid, vm) || strings.HasPrefix(port, vm+"/")
}

// UplinksNamed finds an uplink by its name, of one switch where sw says so.
func UplinksNamed(s *api.State, name, sw string) ([]Candidate[api.Uplink], error) {
	if err := HasSwitch(s, sw); err != nil {
		return nil, err
	}
	u, err := Pick(s.Uplinks, UplinksOf(s, sw), name, sw, func(v api.Uplink) (string, string) {
		return v.Switch, v.Name
	})
	return []Candidate[api.Uplink]{{u.Name, u}}, err
}

// RememberedPort shows a port of a host that does not answer, as that reported it last.
func RememberedPort(d Deps, c *cobra.Command, t *Target, o *Output, name string, away *Absent) error {
	nowhere := &MissingError{Text: fmt.Sprintf("no host that answers has a port or VM %s (heddle port list)",
		printable.Text(name))}
	f, err := t.Fleet()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), CallTimeout)
	defer cancel()
	list, err := f.Ports(ctx, api.FleetPortQuery{})
	if err != nil {
		return err
	}
	host, rest, split := strings.Cut(name, ":")
	list = slices.DeleteFunc(list, func(p api.FleetPort) bool {
		name := name
		if split && p.Host == host {
			name = rest
		}
		return !p.Stale || p.Name != name && !ofVM(name, p.VM, p.Name)
	})
	switch {
	case len(list) == 0:
		return away.With(d, nowhere)
	case len(list) > 1:
		var names []string
		for _, p := range list {
			names = append(names, p.Host+":"+known.Shown(p.Name))
		}
		return away.With(d, Usagef("%d ports are called %s: say which, as %s", len(names), printable.Text(name),
			Some(names)))
	}
	p := list[0]
	err = o.Print(d, p, func(w io.Writer) error {
		return Properties(w, [][2]string{{"host", p.Host}, {"port", p.Name}, {"switch", p.Switch},
			{"port group", p.PortGroup}, {"state", "stale: it was " + p.State + " when its host was heard last"},
			{"device", p.Device}, {"mac", p.MAC}, {"vm", p.VM}, {"adapter", p.Adapter}})
	})
	return errors.Join(err, away.Report(d), &SilentError{Status: ExitFailure})
}
