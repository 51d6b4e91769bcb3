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

// Listing is a command that lists one kind of object from the agent's state.
type Listing[T any] struct {
	What    string // "the uplinks"
	Example string
	Of      func(*api.State) []T
	// Owner returns the switch of an object; nil for objects without a switch, which cannot be filtered by it.
	Owner func(T) string
	Table func() *Table // headings and format
	Row   func(T) []string
	// Tail returns lines that follow a row, made from the agent's whole state; nil for none.
	Tail func(*api.State, T) []string
	// Notes are lines about an object that follow the table; nil for none.
	Notes func(T) []string
	Long  string // its help, "" for none
	// Filter adds the listing's own flags to the command and returns a function that selects and sorts by them; nil for
	// none.
	Filter func(c *cobra.Command) func(s *api.State, list []T) ([]T, error)
	// Wide returns the listing with the columns of -o wide, which may need more requests to the agent; nil for none.
	Wide func(c *cobra.Command, t *Target) (Listing[T], error)
	// Away returns the rows of a host that does not answer, from what the controller remembers, and the same as
	// objects; nil for none.
	Away func(c *cobra.Command, f *api.Fleet, host string) (rows [][]string, objects []any, err error)
}

func (l Listing[T]) Command(d Deps, t *Target) *cobra.Command {
	o, sw := &Output{Wide: l.Wide != nil}, ""
	c := &cobra.Command{Use: "list", Short: "List " + l.What, Long: l.Long, Example: l.Example, Args: Exactly()}
	filter := func(_ *api.State, list []T) ([]T, error) { return list, nil }
	if l.Filter != nil {
		filter = l.Filter(c)
	}
	t = t.Looking(d, c)
	// listed are the objects of one host.
	var choosing sync.Mutex // while flags are read: hosts are asked at the same time
	listed := func(c *cobra.Command, t *Target) (got listedOf[T], err error) {
		if got.state, err = t.State(c); err != nil {
			return got, err
		}
		if got.form = l; o.Format == "wide" {
			if got.form, err = l.Wide(c, t); err != nil {
				return got, err
			}
		}
		choosing.Lock()
		defer choosing.Unlock()
		got.list = l.Of(got.state)
		if l.Owner != nil {
			if err := HasSwitch(got.state, sw); err != nil {
				return got, err
			}
			got.list = OfSwitch(got.list, sw, l.Owner)
		}
		got.list, err = filter(got.state, got.list)
		return got, err
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		if all, err := t.Everywhere(); err != nil {
			return err
		} else if all {
			return l.everywhere(c, d, t, o, listed)
		}
		got, err := listed(c, t)
		if err != nil {
			return err
		}
		return o.Print(d, got.list, func(w io.Writer) error { return got.form.write(w, got.state, got.list) })
	}
	o.Flag(c)
	if l.Owner != nil {
		SwitchFlag(c, &sw)
	}
	return c
}

// listedOf is what a listing found on one host, and how it is shown.
type listedOf[T any] struct {
	state *api.State
	list  []T
	form  Listing[T]
}

// everywhere lists the objects of all hosts.
func (l Listing[T]) everywhere(c *cobra.Command, d Deps, t *Target, o *Output,
	listed func(*cobra.Command, *Target) (listedOf[T], error)) error {
	all, away, err := AskHosts(c, t, func(t *Target) (listedOf[T], error) { return listed(c, t) })
	if err != nil {
		return err
	}
	objects, rows, notes := []any{}, [][]string{}, []string{}
	form := l
	for _, s := range all {
		form = s.Answer.form
		for _, v := range s.Answer.list {
			objects = append(objects, Hosted[T]{s.Host, v})
			row := append([]string{s.Host}, form.Row(v)...)
			if form.Tail != nil {
				row = append(row, form.Tail(s.Answer.state, v)...)
			}
			rows = append(rows, row)
			if form.Notes != nil {
				for _, line := range form.Notes(v) {
					notes = append(notes, s.Host+": "+line)
				}
			}
		}
	}
	if l.Away != nil {
		if objects, rows, err = l.remembered(c, t, away, objects, rows); err != nil {
			return err
		}
	}
	tab := form.Table()
	tab.WithHosts()
	tab.Rows = rows
	err = o.Print(d, objects, func(w io.Writer) error {
		if err := tab.Write(w); err != nil {
			return err
		}
		for _, line := range notes {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, away.Report(d))
}

// remembered adds what the controller remembers of hosts that did not answer.
func (l Listing[T]) remembered(c *cobra.Command, t *Target, away *Absent, objects []any, rows [][]string) ([]any,
	[][]string, error) {
	f, err := t.Fleet()
	if err != nil {
		return nil, nil, err
	}
	for _, h := range away.Hosts {
		more, what, err := l.Away(c, f, h.Name)
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
func (l Listing[T]) write(w io.Writer, s *api.State, list []T) error {
	tab := l.Table()
	for _, v := range list {
		row := l.Row(v)
		if l.Tail != nil {
			row = append(row, l.Tail(s, v)...)
		}
		tab.Add(row...)
	}
	if err := tab.Write(w); err != nil || l.Notes == nil {
		return err
	}
	for _, v := range list {
		for _, line := range l.Notes(v) {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}

func SwitchFlag(c *cobra.Command, sw *string) {
	c.Flags().StringVar(sw, "switch", "", "only of this switch")
}

// OfSwitch returns the objects of the switch; "" returns all. The result is never nil, so that JSON has a list.
func OfSwitch[T any](all []T, sw string, of func(T) string) []T {
	kept := []T{}
	for _, v := range all {
		if sw == "" || of(v) == sw {
			kept = append(kept, v)
		}
	}
	return kept
}

// Joined returns the texts of a list, with sep between them.
func Joined[T any](list []T, sep string) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, sep)
}
