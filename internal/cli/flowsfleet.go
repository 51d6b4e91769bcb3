package cli

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

// FleetFlows are the flows of all hosts.
type FleetFlows struct {
	Flows []hosted[api.Flow] `json:"flows"`
	// Total is how many match, on all hosts.
	Total int `json:"total"`
}

// flowsOfHosts lists the flows of all hosts: a flow between two of them is seen on both.
func flowsOfHosts(c *cobra.Command, d Deps, t *target, o *output, q api.FlowQuery,
	one func(*target) (*api.FlowList, error)) error {
	all, away, err := askHosts(c, t, one)
	if err != nil {
		return err
	}
	out, sum := FleetFlows{Flows: []hosted[api.Flow]{}}, &api.FlowList{}
	for _, s := range all {
		for _, f := range s.answer.Flows {
			out.Flows = append(out.Flows, hosted[api.Flow]{s.host, f})
		}
		out.Total += s.answer.Total
		sum.Kept, sum.SamplingRate = sum.Kept+s.answer.Kept, max(sum.SamplingRate, s.answer.SamplingRate)
		if sum.Note.None() {
			sum.Note = s.answer.Note
		}
	}
	slices.SortStableFunc(out.Flows, func(a, b hosted[api.Flow]) int {
		switch q.Sort {
		case "last":
			return b.of.Last.Compare(a.of.Last)
		case "packets":
			return cmp.Compare(b.of.Packets, a.of.Packets)
		}
		return cmp.Compare(b.of.Bytes, a.of.Bytes)
	})
	out.Flows = out.Flows[:min(len(out.Flows), q.Limit)]
	sum.Total, sum.Flows = out.Total, make([]api.Flow, len(out.Flows))
	err = o.print(d, out, func(w io.Writer) error {
		tab, now := flowRows(o.format), time.Now()
		tab.withHosts()
		for _, f := range out.Flows {
			tab.add(append([]string{f.host}, flowCells(f.of, now)...)...)
		}
		if err := tab.write(w); err != nil {
			return err
		}
		return flowNotes(w, sum)
	})
	return errors.Join(err, away.report(d))
}
