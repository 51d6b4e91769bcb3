package cli

import (
	"fmt"
	"io"

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
	// notes are lines about an object that follow the table; nil for none.
	notes func(T) []string
}

func (l listing[T]) command(d Deps, t *target) *cobra.Command {
	o, sw := &output{}, ""
	c := &cobra.Command{
		Use: "list", Short: "List " + l.what, Example: l.example, Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			s, err := t.state(c)
			if err != nil {
				return err
			}
			if err := hasSwitch(s, sw); err != nil {
				return err
			}
			list := l.of(s)
			if l.owner != nil {
				list = ofSwitch(list, sw, l.owner)
			}
			return o.print(d, list, func(w io.Writer) error {
				tab := l.table()
				for _, v := range list {
					tab.add(l.row(v)...)
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
			})
		},
	}
	o.flag(c)
	if l.owner != nil {
		switchFlag(c, &sw)
	}
	return c
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
