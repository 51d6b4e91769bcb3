package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/spec/printable"
)

// accounts is "heddle stats --check": it shows the ports whose counters do not add up, or were changing, and counts the
// others.
func (q *statsQuery) accounts(c *cobra.Command) error {
	all, err := ask(c, q.t, func(ctx context.Context, s api.Service) ([]api.PortAccount, error) {
		return s.Accounts(ctx)
	})
	if err != nil {
		return err
	}
	all = ofSwitch(all, q.sw, func(a api.PortAccount) string { return a.Switch })
	if err := q.o.print(q.d, all, func(w io.Writer) error { return accountsTable(w, all, q.zero) }); err != nil {
		return err
	}
	broken := 0
	for _, a := range all {
		if a.State == "broken" {
			broken++
		}
	}
	if broken > 0 {
		return fmt.Errorf("the counters of %d of %d ports and uplinks do not add up", broken, len(all))
	}
	return nil
}

func accountsTable(w io.Writer, all []api.PortAccount, every bool) error {
	tab := &table{head: []string{"SWITCH", "PORT", "RECEIVED", "DELIVERED", "DROPPED", "WITHOUT A FATE", "ACCOUNTS"},
		right: map[int]bool{2: true, 3: true, 4: true, 5: true},
		keep:  map[int]bool{2: true, 3: true, 4: true, 5: true}, names: map[int]bool{0: true, 1: true},
		narrow: []func(*table){leaveOutTheOnly("SWITCH")}}
	exact, widest := 0, int64(0)
	for _, a := range all {
		if a.State == "exact" {
			exact++
		}
		if a.State == "open" {
			widest = max(widest, a.Most-a.Least)
		}
		if a.State == "exact" && !every {
			continue
		}
		between := strconv.FormatInt(a.Least, 10)
		if a.Most != a.Least {
			between += " to " + strconv.FormatInt(a.Most, 10)
		}
		verdict := a.State
		if a.Fault != "" {
			verdict += ": " + a.Fault
		}
		text := func(n uint64) string { return strconv.FormatUint(n, 10) }
		tab.add(a.Switch, a.Name, text(a.Received), text(a.Delivered), text(a.Dropped), between, verdict)
	}
	if len(tab.rows) > 0 {
		if err := tab.write(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d of %d ports and uplinks were at rest, and every frame received has its fate\n", exact,
		len(all))
	if err == nil && widest > 0 {
		_, err = fmt.Fprintf(w, "of the others, which had traffic, no more than %s in doubt at one of them\n",
			printable.Count(widest, "frame is", "frames are"))
	}
	return err
}
