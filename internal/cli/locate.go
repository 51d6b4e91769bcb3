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

// wanted is one object that a command shows, by name.
type wanted[T any] struct {
	name string
	what string // "uplink"
	kind string // of several: "uplinks"
	list string // the command that lists them
	// here finds those of that name on a host; the error says how its objects are called otherwise.
	here func(s *api.State, name string) ([]candidate[T], error)
	// runs is the one to show of several that are one and the same, such as the ports of a guest that moves; -1 for
	// several things. nil: they never are.
	runs func([]T) int
}

// named is an object with its name.
type candidate[T any] struct {
	name string
	of   T
}

// located is an object, and the host that has it: "" for the one that was asked.
type located[T any] struct {
	host string
	on   *target
	of   T
}

// object is what is printed in JSON: with the host, where it was looked for on all.
func (l located[T]) object(v any) any {
	if l.host == "" {
		return v
	}
	return hosted[any]{l.host, v}
}

// row is the line with the host.
func (l located[T]) row() [][2]string {
	if l.host == "" {
		return nil
	}
	return [][2]string{{"host", l.host}}
}

// locate finds an object on the host that is asked or, where all are asked, on whichever has it. HOST:NAME is that
// host's. Where several are meant the error names them.
func locate[T any](c *cobra.Command, t *target, w wanted[T]) (found located[T], away *absent, err error) {
	all, err := t.everywhere()
	if err != nil {
		return found, nil, err
	}
	ask := func(t *target, name string) (list []candidate[T], err error) {
		s, err := t.state(c)
		if err != nil {
			return nil, err
		}
		return w.here(s, name)
	}
	if !all {
		list, err := ask(t, w.name)
		if err == nil && len(list) > 1 {
			err = usagef("%s has %d ports: say which, as %s", printable.Text(w.name), len(list), alternatives("", list))
		}
		if err != nil {
			return found, nil, err
		}
		return located[T]{on: t, of: list[0].of}, &absent{}, nil
	}
	host, rest, split := strings.Cut(w.name, ":")
	lists, away, err := askHosts(c, t, func(t *target) ([]candidate[T], error) {
		if split && t.host == host {
			return ask(t, rest)
		}
		return ask(t, w.name)
	})
	if err != nil && isMissing(err) || err == nil && len(lists) == 0 {
		return found, away, &missingError{fmt.Sprintf("no host that answers has a %s %s (%s)", w.what,
			printable.Text(w.name), w.list)}
	}
	if err != nil {
		return found, away, err
	}
	lists = slices.DeleteFunc(lists, func(s said[[]candidate[T]]) bool { // HOST:NAME is that host's
		return split && s.host != host && slices.ContainsFunc(lists, func(o said[[]candidate[T]]) bool {
			return o.host == host
		})
	})
	var names []string
	var several []located[T]
	var of []T
	for _, s := range lists {
		for _, o := range s.answer {
			found = located[T]{host: s.host, on: t.on(s.host), of: o.of}
			several, of = append(several, found), append(of, o.of)
			names = append(names, s.host+":"+known.Shown(o.name))
		}
	}
	if len(names) > 1 && w.runs != nil {
		if i := w.runs(of); i >= 0 {
			return several[i], away, nil
		}
	}
	if len(names) > 1 {
		return found, away, usagef("%d %s are called %s: say which, as %s", len(names), w.kind, printable.Text(w.name),
			some(names))
	}
	return found, away, nil
}

// mostAlternatives is how many objects an error names.
const mostAlternatives = 8

func some(names []string) string {
	if more := len(names) - mostAlternatives; more > 0 {
		return strings.Join(names[:mostAlternatives], " or ") + fmt.Sprintf(" (and %d more)", more)
	}
	return strings.Join(names, " or ")
}

func alternatives[T any](host string, list []candidate[T]) string {
	var names []string
	for _, o := range list {
		names = append(names, hostPrefix(host)+known.Shown(o.name))
	}
	return some(names)
}

// with names the hosts that do not answer beside an error: the object may be on one of them.
func (a *absent) with(d Deps, err error) error {
	if a == nil {
		return err
	}
	_ = a.report(d)
	return err
}

// portsNamed finds a port by its name, or by the UUID or the name of its VM.
func portsNamed(s *api.State, name string) ([]candidate[api.Port], error) {
	p, err := pick(s.Ports, portsOf(s), name, "", func(p api.Port) (string, string) { return p.Switch, p.Name })
	if err == nil {
		return []candidate[api.Port]{{p.Name, p}}, nil
	}
	if !isMissing(err) {
		return nil, err
	}
	var list []candidate[api.Port]
	for _, p := range s.Ports {
		if ofVM(name, p.VM, p.Name) {
			list = append(list, candidate[api.Port]{p.Name, p})
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

// uplinksNamed finds an uplink by its name, of one switch where sw says so.
func uplinksNamed(s *api.State, name, sw string) ([]candidate[api.Uplink], error) {
	if err := hasSwitch(s, sw); err != nil {
		return nil, err
	}
	u, err := pick(s.Uplinks, uplinksOf(s, sw), name, sw, func(v api.Uplink) (string, string) {
		return v.Switch, v.Name
	})
	return []candidate[api.Uplink]{{u.Name, u}}, err
}

// rememberedPort shows a port of a host that does not answer, as that reported it last.
func rememberedPort(d Deps, c *cobra.Command, t *target, o *output, name string, away *absent) error {
	nowhere := &missingError{fmt.Sprintf("no host that answers has a port or VM %s (heddle port list)",
		printable.Text(name))}
	f, err := t.fleet()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), callTimeout)
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
		return away.with(d, nowhere)
	case len(list) > 1:
		var names []string
		for _, p := range list {
			names = append(names, p.Host+":"+known.Shown(p.Name))
		}
		return away.with(d, usagef("%d ports are called %s: say which, as %s", len(names), printable.Text(name),
			some(names)))
	}
	p := list[0]
	err = o.print(d, p, func(w io.Writer) error {
		return properties(w, [][2]string{{"host", p.Host}, {"port", p.Name}, {"switch", p.Switch},
			{"port group", p.PortGroup}, {"state", "stale: it was " + p.State + " when its host was heard last"},
			{"device", p.Device}, {"mac", p.MAC}, {"vm", p.VM}, {"adapter", p.Adapter}})
	})
	return errors.Join(err, away.report(d), &SilentError{Status: ExitFailure})
}
