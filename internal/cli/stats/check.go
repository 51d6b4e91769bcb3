package stats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

// hostAccount is the account of a port of a host; "" is this one.
type hostAccount struct {
	host string
	api.PortAccount
}

// accounts is "heddle stats --check": it shows the ports whose counters do not add up, or were changing, and counts the
// others.
func (q *statsQuery) accounts(c *cobra.Command) error {
	one := func(t *cli.Target) ([]api.PortAccount, error) {
		all, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) ([]api.PortAccount, error) {
			return s.Accounts(ctx)
		})
		if err != nil {
			return nil, err
		}
		if all = cli.OfSwitch(all, q.sw, func(a api.PortAccount) string { return a.Switch }); len(all) == 0 {
			return all, t.Has(c, q.sw, "")
		}
		return all, nil
	}
	list, away := []cli.Said[[]api.PortAccount]{{}}, &cli.Absent{}
	var err error
	if q.all {
		list, away, err = cli.AskHosts(c, q.t, one)
	} else {
		list[0].Answer, err = one(q.t)
	}
	if err != nil {
		return err
	}
	var object any = cli.OfHosts(list)
	if !q.all {
		object = list[0].Answer
	}
	var all []hostAccount
	broken := 0
	for _, s := range list {
		for _, a := range s.Answer {
			all = append(all, hostAccount{s.Host, a})
			if a.State == "broken" {
				broken++
			}
		}
	}
	err = q.o.Print(q.d, object, func(w io.Writer) error { return accountsTable(w, all, q.zero, q.all) })
	if broken > 0 {
		err = errors.Join(err, fmt.Errorf("the counters of %d of %d ports and uplinks do not add up", broken, len(all)))
	}
	return errors.Join(err, away.Report(q.d))
}

func accountsTable(w io.Writer, all []hostAccount, every, hosts bool) error {
	tab := &cli.Table{Head: []string{"SWITCH", "PORT", "RECEIVED", "DELIVERED", "DROPPED", "WITHOUT A FATE",
		"ACCOUNTS"},
		Right: map[int]bool{2: true, 3: true, 4: true, 5: true},
		Keep:  map[int]bool{2: true, 3: true, 4: true, 5: true}, Names: map[int]bool{0: true, 1: true},
		Narrow: []func(*cli.Table){cli.LeaveOutTheOnly("SWITCH")}}
	if hosts {
		tab.WithHosts()
	}
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
		cells := []string{a.Switch, a.Name, text(a.Received), text(a.Delivered), text(a.Dropped), between, verdict}
		if hosts {
			cells = append([]string{a.host}, cells...)
		}
		tab.Add(cells...)
	}
	if len(tab.Rows) > 0 {
		if err := tab.Write(w); err != nil {
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
