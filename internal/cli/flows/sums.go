package flows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/top"
	"heddle/internal/spec/printable"
)

// byFlag adds the flag that requests sums.
func byFlag(c *cobra.Command, by *string) {
	c.Flags().StringVar(by, "by", "", "sum up by "+strings.Join(api.FlowSumKeys(), ", ")+", each packet counted once")
	_ = c.RegisterFlagCompletionFunc("by", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return api.FlowSumKeys(), cobra.ShellCompDirectiveNoFileComp
	})
}

// checkSums returns what is wrong with a query for sums.
func checkSums(q *api.FlowSumQuery) error {
	q.By = cli.Spelt(q.By)
	sorts := api.FlowSumSorts()
	if q.Of == api.SumsOfRates {
		sorts = api.FlowTopSorts()
	}
	switch {
	case !slices.Contains(api.FlowSumKeys(), q.By):
		return cli.Usagef("--by %q: use one of %s", q.By, strings.Join(api.FlowSumKeys(), ", "))
	case !slices.Contains(sorts, q.Sort):
		return cli.Usagef("--sort %q: with --by use one of %s", q.Sort, strings.Join(sorts, ", "))
	case q.Limit < 1 || q.Limit > api.MaxFlowTop:
		return cli.Usagef("--limit %d: with --by it is 1–%d", q.Limit, api.MaxFlowTop)
	case q.Of != api.SumsOfFlows && q.Interval < api.ShortestFlowInterval:
		return cli.Usagef("--interval %v: it is %v or more", q.Interval, api.ShortestFlowInterval)
	}
	return nil
}

// listSums prints the sums of the current flows.
func listSums(c *cobra.Command, d cli.Deps, t *cli.Target, o *cli.Output, q api.FlowSumQuery) error {
	if err := checkSums(&q); err != nil {
		return err
	}
	one := func(t *cli.Target) (*api.FlowSums, error) {
		return cli.Ask(c, t, func(ctx context.Context, s api.Service) (sums *api.FlowSums, err error) {
			err = s.FlowSums(ctx, q, func(all api.FlowSums) error { sums = &all; return nil })
			if err == nil && sums == nil {
				err = api.ErrEnded
			}
			return sums, err
		})
	}
	if all, err := t.Everywhere(); err != nil {
		return err
	} else if all {
		limit := q.Limit
		q = sumsFor(q)
		list, away, err := cli.AskHosts(c, t, one)
		if err != nil {
			return err
		}
		var sums []api.FlowSums
		for _, s := range list {
			sums = append(sums, *s.Answer)
		}
		merged := mergeSums(q, limit, sums)
		err = o.Print(d, merged, func(w io.Writer) error {
			return errors.Join(sumTable(w, merged), betweenHosts(w, len(list)))
		})
		return errors.Join(err, away.Report(d))
	}
	sums, err := one(t)
	if err != nil {
		return err
	}
	return o.Print(d, sums, func(w io.Writer) error { return sumTable(w, sums) })
}

// betweenHosts says how sums of several hosts are made.
func betweenHosts(w io.Writer, hosts int) error {
	if hosts < 2 {
		return nil
	}
	_, err := fmt.Fprintln(w, "the sums are of all hosts: what passes between two of them is counted on both")
	return err
}

// sumHeads returns the headings of the first cells of a row; sumNames are the cells.
func sumHeads(by string) []string {
	switch by {
	case api.ByPortGroup:
		return []string{"SWITCH", "PORT GROUP"}
	case api.ByVLAN:
		return []string{"SWITCH", "VLAN"}
	case api.ByService:
		return []string{"SERVICE", "NAME"}
	case api.ByConversation:
		return []string{"PROTO", "CLIENT", "SERVER"}
	}
	return []string{strings.ToUpper(by)}
}

func sumNames(by string) func(*api.FlowSum) []string {
	return func(r *api.FlowSum) []string {
		switch by {
		case api.ByPortGroup, api.ByVLAN:
			return []string{r.Switch, r.Name}
		case api.ByService:
			return []string{r.Name, cli.Dash(r.Service)}
		case api.ByConversation:
			client, server, _ := strings.Cut(r.Name, " – ")
			return []string{r.Protocol, client, server}
		}
		return []string{r.Name}
	}
}

// hasBack reports whether rows also have the packets of the opposite direction.
func hasBack(by string) bool {
	return by == api.ByAddress || by == api.ByPortGroup || by == api.ByConversation
}

// sumTable shows sums as a table: the rest and the total are its last rows.
func sumTable(w io.Writer, s *api.FlowSums) error {
	heads, names := sumHeads(s.By), sumNames(s.By)
	numbersOf := []string{"FLOWS", "PACKETS", "BYTES", "SHARE"}
	if hasBack(s.By) {
		numbersOf = []string{"FLOWS", "PACKETS", "BYTES", "BACK", "SHARE"}
	}
	tab := cli.Numbers(heads, numbersOf)
	add := func(cells []string, r *api.FlowSum, back string) {
		for len(cells) < len(heads) {
			cells = append(cells, "")
		}
		cells = append(cells, strconv.Itoa(r.Flows), countText(r.Packets), countText(r.Bytes))
		if hasBack(s.By) {
			cells = append(cells, back)
		}
		tab.Add(append(cells, fmt.Sprintf("%.1f %%", 100*r.Share))...)
	}
	for i := range s.Rows {
		add(names(&s.Rows[i]), &s.Rows[i], countText(s.Rows[i].Back.Bytes))
	}
	if s.Rest.Groups > 0 {
		add([]string{fmt.Sprintf("%d others", s.Rest.Groups)}, &s.Rest, countText(s.Rest.Back.Bytes))
	}
	if len(s.Rows) > 0 {
		add([]string{"total"}, &s.Total, "")
	}
	if err := tab.Write(w); err != nil {
		return err
	}
	for _, line := range sumNotes(s) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// sumNotes returns what a reader of sums must know.
func sumNotes(s *api.FlowSums) (lines []string) {
	if len(s.Rows) == 0 && !s.Note.None() {
		lines = append(lines, s.Note.Text)
	}
	if len(s.Rows) > 0 && (s.By == api.ByAddress || s.By == api.ByPortGroup) {
		lines = append(lines, "each packet is in the rows of both its ends, and once in the total")
	}
	if s.Crowded {
		lines = append(lines, "there are more rows than are kept apart: part of a row may be in the others")
	}
	if s.Missed > 0 {
		lines = append(lines, missedRecords(s.Missed))
	}
	if text := sampled(s.SamplingRate); text != "" {
		lines = append(lines, text)
	}
	return lines
}

// watchSums prints, after every interval, the sums of the records that were made in it.
func watchSums(ctx context.Context, d cli.Deps, client api.Service, out *cli.Stream, q api.FlowSumQuery) error {
	if err := checkSums(&q); err != nil {
		return err
	}
	ended := func() {
		fmt.Fprintln(d.Stderr, "the agent has ended; the switch goes on counting, and records are followed when it "+
			"is back")
	}
	return cli.FollowAgents(ctx, ended, func(heard func()) error {
		return client.FlowSums(ctx, q, func(s api.FlowSums) error {
			heard()
			return writeSums(d, out, q, &s)
		})
	})
}

// writeSums prints the sums of an interval.
func writeSums(d cli.Deps, out *cli.Stream, q api.FlowSumQuery, s *api.FlowSums) error {
	if !out.Text() {
		return out.Write(d.Stdout, s)
	}
	if _, err := fmt.Fprintf(d.Stdout, "%s  %s reported in %v\n", s.Time.Local().Format("2006-01-02 15:04:05"),
		printable.Count(s.Total.Flows, "flow", "flows"), q.Interval); err != nil {
		return err
	}
	if err := sumTable(d.Stdout, s); err != nil {
		return err
	}
	_, err := fmt.Fprintln(d.Stdout)
	return err
}

// runSums is "heddle flows top --by".
func (v *flowTop) runSums(c *cobra.Command, by string) error {
	q := api.FlowSumQuery{FlowFilter: v.q.FlowFilter, By: by, Of: api.SumsOfRates, Sort: v.q.Sort, Limit: v.q.Limit,
		Interval: v.q.Interval}
	if err := checkSums(&q); err != nil {
		return err
	}
	all, err := v.t.Everywhere()
	if err != nil {
		return err
	}
	shown := top.FlowView{Title: v.t.Title(), Interval: q.Interval, Sort: q.Sort, Only: onlyText(q.FlowFilter)}
	view := top.NewSums(top.SumModel{FlowView: shown, Heads: sumHeads(q.By)}, sumNames(q.By))
	if all {
		return showTops(c.Context(), v, tops[top.HostsSums]{view: view, update: view.UpdateHosts,
			follow: func(ctx context.Context, sort string, emit func(top.HostsSums) error) error {
				q := q
				q.Sort = sort
				return v.followSums(ctx, q, emit)
			}, live: func(read func(context.Context, string) (top.HostsSums, error)) top.View {
				return top.RunSums(view, read, view.UpdateHosts)
			}})
	}
	client, err := v.t.Client()
	if err != nil {
		return err
	}
	return showTops(c.Context(), v, tops[api.FlowSums]{view: view, update: view.Update,
		follow: func(ctx context.Context, sort string, emit func(api.FlowSums) error) error {
			q := q
			q.Sort = sort
			return client.FlowSums(ctx, q, emit)
		}, live: func(read func(context.Context, string) (api.FlowSums, error)) top.View {
			return top.RunSums(view, read, view.Update)
		}})
}

// terminal returns the terminal's two files, and whether the view is shown there; otherwise it sets how often the view
// is printed.
func (v *flowTop) terminal() (in, out *os.File, live bool) {
	in, isIn := v.d.Stdin.(*os.File)
	out, isOut := v.d.Raw.(*os.File)
	if v.once || v.batch || !v.out.Text() || !isIn || !isOut || !cli.IsTerminal(in) || !cli.IsTerminal(out) {
		if v.once || !v.batch && v.count == 0 && v.out.Text() {
			v.count = 1
		}
		return in, out, false
	}
	return in, out, true
}
