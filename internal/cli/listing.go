package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

// listing is a command that lists one kind of object from the agent's state.
type listing[T any] struct {
	what    string // "the uplinks"
	example string
	of      func(*api.State) []T
	// owner returns the switch of an object; nil for objects without a switch, which cannot be filtered by it.
	owner func(T) string
	table func() *table // headings and format
	row   func(T) []string
	// tail returns lines that follow a row, made from the agent's whole state; nil for none.
	tail func(*api.State, T) []string
	// notes are lines about an object that follow the table; nil for none.
	notes func(T) []string
	long  string // its help, "" for none
	// filter adds the listing's own flags to the command and returns a function that selects and sorts by them; nil for
	// none.
	filter func(c *cobra.Command) func(s *api.State, list []T) ([]T, error)
	// wide returns the listing with the columns of -o wide, which may need more requests to the agent; nil for none.
	wide func(c *cobra.Command, t *target) (listing[T], error)
	// away returns the rows of a host that does not answer, from what the controller remembers, and the same as
	// objects; nil for none.
	away func(c *cobra.Command, f *api.Fleet, host string) (rows [][]string, objects []any, err error)
}

func (l listing[T]) command(d Deps, t *target) *cobra.Command {
	o, sw := &output{wide: l.wide != nil}, ""
	c := &cobra.Command{Use: "list", Short: "List " + l.what, Long: l.long, Example: l.example, Args: exactly()}
	filter := func(_ *api.State, list []T) ([]T, error) { return list, nil }
	if l.filter != nil {
		filter = l.filter(c)
	}
	t = t.looking(d, c)
	// listed are the objects of one host.
	var choosing sync.Mutex // while flags are read: hosts are asked at the same time
	listed := func(c *cobra.Command, t *target) (got listedOf[T], err error) {
		if got.state, err = t.state(c); err != nil {
			return got, err
		}
		if got.form = l; o.format == "wide" {
			if got.form, err = l.wide(c, t); err != nil {
				return got, err
			}
		}
		choosing.Lock()
		defer choosing.Unlock()
		got.list = l.of(got.state)
		if l.owner != nil {
			if err := hasSwitch(got.state, sw); err != nil {
				return got, err
			}
			got.list = ofSwitch(got.list, sw, l.owner)
		}
		got.list, err = filter(got.state, got.list)
		return got, err
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		if all, err := t.everywhere(); err != nil {
			return err
		} else if all {
			return l.everywhere(c, d, t, o, listed)
		}
		got, err := listed(c, t)
		if err != nil {
			return err
		}
		return o.print(d, got.list, func(w io.Writer) error { return got.form.write(w, got.state, got.list) })
	}
	o.flag(c)
	if l.owner != nil {
		switchFlag(c, &sw)
	}
	return c
}

// listedOf is what a listing found on one host, and how it is shown.
type listedOf[T any] struct {
	state *api.State
	list  []T
	form  listing[T]
}

// everywhere lists the objects of all hosts.
func (l listing[T]) everywhere(c *cobra.Command, d Deps, t *target, o *output,
	listed func(*cobra.Command, *target) (listedOf[T], error)) error {
	all, away, err := askHosts(c, t, func(t *target) (listedOf[T], error) { return listed(c, t) })
	if err != nil {
		return err
	}
	objects, rows, notes := []any{}, [][]string{}, []string{}
	form := l
	for _, s := range all {
		form = s.answer.form
		for _, v := range s.answer.list {
			objects = append(objects, hosted[T]{s.host, v})
			row := append([]string{s.host}, form.row(v)...)
			if form.tail != nil {
				row = append(row, form.tail(s.answer.state, v)...)
			}
			rows = append(rows, row)
			if form.notes != nil {
				for _, line := range form.notes(v) {
					notes = append(notes, s.host+": "+line)
				}
			}
		}
	}
	if l.away != nil {
		if objects, rows, err = l.remembered(c, t, away, objects, rows); err != nil {
			return err
		}
	}
	tab := form.table()
	tab.withHosts()
	tab.rows = rows
	err = o.print(d, objects, func(w io.Writer) error {
		if err := tab.write(w); err != nil {
			return err
		}
		for _, line := range notes {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, away.report(d))
}

// remembered adds what the controller remembers of hosts that did not answer.
func (l listing[T]) remembered(c *cobra.Command, t *target, away *absent, objects []any, rows [][]string) ([]any,
	[][]string, error) {
	f, err := t.fleet()
	if err != nil {
		return nil, nil, err
	}
	for _, h := range away.hosts {
		more, what, err := l.away(c, f, h.Name)
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, what...)
		for _, row := range more {
			rows = append(rows, append([]string{h.Name}, row...))
		}
	}
	return objects, rows, nil
}

// write prints the table, and the notes below it.
func (l listing[T]) write(w io.Writer, s *api.State, list []T) error {
	tab := l.table()
	for _, v := range list {
		row := l.row(v)
		if l.tail != nil {
			row = append(row, l.tail(s, v)...)
		}
		tab.add(row...)
	}
	if err := tab.write(w); err != nil || l.notes == nil {
		return err
	}
	for _, v := range list {
		for _, line := range l.notes(v) {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}

func switchFlag(c *cobra.Command, sw *string) {
	c.Flags().StringVar(sw, "switch", "", "only of this switch")
}

// ofSwitch returns the objects of the switch; "" returns all. The result is never nil, so that JSON has a list.
func ofSwitch[T any](all []T, sw string, of func(T) string) []T {
	kept := []T{}
	for _, v := range all {
		if sw == "" || of(v) == sw {
			kept = append(kept, v)
		}
	}
	return kept
}

// joined returns the texts of a list, with sep between them.
func joined[T any](list []T, sep string) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, sep)
}
