package flows

import (
	"cmp"
	"slices"

	"heddle/internal/api"
	"heddle/internal/cli"
)

// sumKey says which rows of several hosts are of the same.
type sumKey struct{ name, sw, vlan, protocol string }

// mergeSums are the sums of several hosts together. Each host counts a packet once; one that passes between two hosts
// is counted on both.
func mergeSums(q api.FlowSumQuery, limit int, list []api.FlowSums) *api.FlowSums {
	out := &api.FlowSums{By: q.By, Rows: []api.FlowSum{}}
	at := map[sumKey]int{}
	for i := range list {
		s := &list[i]
		mergeHead(out, s, i == 0)
		for _, r := range s.Rows {
			k := sumKey{r.Name, r.Switch, r.VLAN.String(), r.Protocol}
			if n, ok := at[k]; ok {
				addSum(&out.Rows[n], &r)
				continue
			}
			at[k] = len(out.Rows)
			out.Rows = append(out.Rows, r)
		}
	}
	slices.SortStableFunc(out.Rows, func(a, b api.FlowSum) int {
		return cmp.Or(cmp.Compare(sumOrder(q, &b), sumOrder(q, &a)), cmp.Compare(a.Name, b.Name))
	})
	for i := limit; i < len(out.Rows); i++ {
		out.Rest.Groups++
		addSum(&out.Rest, &out.Rows[i])
	}
	out.Rows = out.Rows[:min(len(out.Rows), limit)]
	for i := range out.Rows {
		out.Rows[i].Share = shareOf(q, &out.Rows[i], &out.Total)
	}
	out.Rest.Name, out.Total.Name = "others", "total"
	out.Rest.Share, out.Total.Share = shareOf(q, &out.Rest, &out.Total), shareOf(q, &out.Total, &out.Total)
	return out
}

// mergeHead adds what the sums of a host say besides their rows.
func mergeHead(out, s *api.FlowSums, first bool) {
	if s.Time.After(out.Time) {
		out.Time = s.Time
	}
	addSum(&out.Total, &s.Total)
	if s.Rest.Groups > 0 { // a row of another host may be among these
		out.Rest.Groups += s.Rest.Groups
		out.Crowded = true
		addSum(&out.Rest, &s.Rest)
	}
	out.Crowded = out.Crowded || s.Crowded
	out.Missed += s.Missed
	out.Metered = out.Metered || s.Metered
	out.SamplingRate = max(out.SamplingRate, s.SamplingRate)
	if first || s.Note.None() { // what is metered on one host is
		out.Note = s.Note
	}
}

func addSum(to, r *api.FlowSum) {
	to.Flows += r.Flows
	addCounts(&to.FlowCounts, r.FlowCounts)
	addCounts(&to.Back, r.Back)
	to.Rates.Packets += r.Rates.Packets
	to.Rates.Bits += r.Rates.Bits
	to.Service = cmp.Or(to.Service, r.Service)
}

func addCounts(to *api.FlowCounts, n api.FlowCounts) {
	to.Packets += n.Packets
	to.Bytes += n.Bytes
	to.FrameBytes += n.FrameBytes
}

// sumOrder is the number by which rows are ordered.
func sumOrder(q api.FlowSumQuery, r *api.FlowSum) float64 {
	switch {
	case q.Of == api.SumsOfRates && q.Sort == "packets":
		return r.Rates.Packets
	case q.Of == api.SumsOfRates:
		return r.Rates.Bits
	case q.Sort == "packets":
		return float64(r.Packets)
	case q.Sort == "flows":
		return float64(r.Flows)
	}
	return float64(r.Bytes)
}

func shareOf(q api.FlowSumQuery, r, total *api.FlowSum) float64 {
	switch {
	case q.Of == api.SumsOfRates && total.Rates.Bits > 0:
		return r.Rates.Bits / total.Rates.Bits
	case q.Of != api.SumsOfRates && total.FrameBytes > 0:
		return float64(r.FrameBytes) / float64(total.FrameBytes)
	}
	return 0
}

// mergeTops are the flows of several hosts with the highest rates, and the host of each.
func mergeTops(sort string, limit int, list []cli.Said[api.FlowTop]) (out api.FlowTop, hosts []string) {
	type hostFlow struct {
		host string
		api.FlowRate
	}
	var all []hostFlow
	for i, s := range list {
		t := &s.Answer
		for _, f := range t.Flows {
			all = append(all, hostFlow{s.Host, f})
		}
		if t.Time.After(out.Time) {
			out.Time = t.Time
		}
		out.Matching, out.Active = out.Matching+t.Matching, out.Active+t.Active
		out.Sum.Packets, out.Sum.Bits = out.Sum.Packets+t.Sum.Packets, out.Sum.Bits+t.Sum.Bits
		out.Metered, out.SamplingRate = out.Metered || t.Metered, max(out.SamplingRate, t.SamplingRate)
		if i == 0 || t.Note.None() {
			out.Note = t.Note
		}
	}
	slices.SortStableFunc(all, func(a, b hostFlow) int {
		if sort == "packets" {
			return cmp.Compare(b.Rates.Packets, a.Rates.Packets)
		}
		return cmp.Compare(b.Rates.Bits, a.Rates.Bits)
	})
	out.Flows = []api.FlowRate{}
	for _, f := range all[:min(len(all), limit)] {
		out.Flows, hosts = append(out.Flows, f.FlowRate), append(hosts, f.host)
	}
	return out, hosts
}
