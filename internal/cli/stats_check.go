package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"heddle/internal/api"
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
	one := func(t *target) ([]api.PortAccount, error) {
		all, err := ask(c, t, func(ctx context.Context, s api.Service) ([]api.PortAccount, error) {
			return s.Accounts(ctx)
		})
		if err != nil {
			return nil, err
		}
		if all = ofSwitch(all, q.sw, func(a api.PortAccount) string { return a.Switch }); len(all) == 0 {
			return all, t.has(c, q.sw, "")
		}
		return all, nil
	}
	list, away := []said[[]api.PortAccount]{{}}, &absent{}
	var err error
	if q.all {
		list, away, err = askHosts(c, q.t, one)
	} else {
		list[0].answer, err = one(q.t)
	}
	if err != nil {
		return err
	}
	var object any = ofHosts(list)
	if !q.all {
		object = list[0].answer
	}
	var all []hostAccount
	broken := 0
	for _, s := range list {
		for _, a := range s.answer {
			all = append(all, hostAccount{s.host, a})
			if a.State == "broken" {
				broken++
			}
		}
	}
	err = q.o.print(q.d, object, func(w io.Writer) error { return accountsTable(w, all, q.zero, q.all) })
	if broken > 0 {
		err = errors.Join(err, fmt.Errorf("the counters of %d of %d ports and uplinks do not add up", broken, len(all)))
	}
	return errors.Join(err, away.report(q.d))
}

func accountsTable(w io.Writer, all []hostAccount, every, hosts bool) error {
	tab := &table{head: []string{"SWITCH", "PORT", "RECEIVED", "DELIVERED", "DROPPED", "WITHOUT A FATE", "ACCOUNTS"},
		right: map[int]bool{2: true, 3: true, 4: true, 5: true},
		keep:  map[int]bool{2: true, 3: true, 4: true, 5: true}, names: map[int]bool{0: true, 1: true},
		narrow: []func(*table){leaveOutTheOnly("SWITCH")}}
	if hosts {
		tab.withHosts()
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
		tab.add(cells...)
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
