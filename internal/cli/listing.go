package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

// listing is a command that lists one kind of object out of the agent's state.
type listing[T any] struct {
	what    string // "the uplinks"
	example string
	of      func(*api.State) []T
	// owner names the switch an object belongs to; nil for objects that no switch owns, which cannot be filtered by it.
	owner func(T) string
	table func() *table // its heading and form
	row   func(T) []string
	// tail is what follows a row out of everything the agent has; nil for nothing.
	tail func(*api.State, T) []string
	// notes are lines about an object that follow the table; nil for none.
	notes func(T) []string
	long  string // its help, "" for none
	// filter adds flags of the listing's own to the command and returns what they choose and how they order it; nil for
	// none.
	filter func(c *cobra.Command) func(s *api.State, list []T) ([]T, error)
	// wide is the listing with the columns of -o wide, which may ask the agent for more; nil for none.
	wide func(c *cobra.Command) (listing[T], error)
}

func (l listing[T]) command(d Deps, t *target) *cobra.Command {
	o, sw := &output{wide: l.wide != nil}, ""
	c := &cobra.Command{Use: "list", Short: "List " + l.what, Long: l.long, Example: l.example, Args: exactly()}
	filter := func(_ *api.State, list []T) ([]T, error) { return list, nil }
	if l.filter != nil {
		filter = l.filter(c)
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		s, err := t.state(c)
		if err != nil {
			return err
		}
		list := l.of(s)
		if l.owner != nil {
			if err := hasSwitch(s, sw); err != nil {
				return err
			}
			list = ofSwitch(list, sw, l.owner)
		}
		if list, err = filter(s, list); err != nil {
			return err
		}
		form := l
		if o.format == "wide" {
			if form, err = l.wide(c); err != nil {
				return err
			}
		}
		return o.print(d, list, func(w io.Writer) error { return form.write(w, s, list) })
	}
	o.flag(c)
	if l.owner != nil {
		switchFlag(c, &sw)
	}
	return c
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

// ofSwitch keeps what belongs to the switch; "" keeps all. The result is never nil, so that JSON has a list.
func ofSwitch[T any](all []T, sw string, of func(T) string) []T {
	kept := []T{}
	for _, v := range all {
		if sw == "" || of(v) == sw {
			kept = append(kept, v)
		}
	}
	return kept
}

// joined is a list of what has a text, with sep between.
func joined[T any](list []T, sep string) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, sep)
}
