package flows

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

// FleetFlows are the flows of all hosts.
type FleetFlows struct {
	Flows []cli.Hosted[api.Flow] `json:"flows"`
	// Total is how many match, on all hosts.
	Total int `json:"total"`
}

// flowsOfHosts lists the flows of all hosts: a flow between two of them is seen on both.
func flowsOfHosts(c *cobra.Command, d cli.Deps, t *cli.Target, o *cli.Output, q api.FlowQuery,
	one func(*cli.Target) (*api.FlowList, error)) error {
	all, away, err := cli.AskHosts(c, t, one)
	if err != nil {
		return err
	}
	out, sum := FleetFlows{Flows: []cli.Hosted[api.Flow]{}}, &api.FlowList{}
	for _, s := range all {
		for _, f := range s.Answer.Flows {
			out.Flows = append(out.Flows, cli.Hosted[api.Flow]{Host: s.Host, Of: f})
		}
		out.Total += s.Answer.Total
		sum.Kept, sum.SamplingRate = sum.Kept+s.Answer.Kept, max(sum.SamplingRate, s.Answer.SamplingRate)
		if sum.Note.None() {
			sum.Note = s.Answer.Note
		}
	}
	slices.SortStableFunc(out.Flows, func(a, b cli.Hosted[api.Flow]) int {
		switch q.Sort {
		case "last":
			return b.Of.Last.Compare(a.Of.Last)
		case "packets":
			return cmp.Compare(b.Of.Packets, a.Of.Packets)
		}
		return cmp.Compare(b.Of.Bytes, a.Of.Bytes)
	})
	out.Flows = out.Flows[:min(len(out.Flows), q.Limit)]
	sum.Total, sum.Flows = out.Total, make([]api.Flow, len(out.Flows))
	err = o.Print(d, out, func(w io.Writer) error {
		tab, now := flowRows(o.Format), time.Now()
		tab.WithHosts()
		for _, f := range out.Flows {
			tab.Add(append([]string{f.Host}, flowCells(f.Of, now)...)...)
		}
		if err := tab.Write(w); err != nil {
			return err
		}
		return flowNotes(w, sum)
	})
	return errors.Join(err, away.Report(d))
}
