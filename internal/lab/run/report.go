package run

import (
	"strings"
	"time"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
	"heddle/internal/lab/report/topology"
	"heddle/internal/lab/scenario"
)

// Report makes the report of an experiment's results, with sentences that explain them.
func Report(e *experiment.Experiment, all []Measured) *report.Report {
	r := &report.Report{Name: e.Name, Explained: e.Explained, Environment: report.Collect(time.Now())}
	for _, m := range all {
		if e.Name == experiment.Placement {
			r.Rows = append(r.Rows, placementRow(m))
		} else {
			r.Rows = append(r.Rows, nestedRow(m, all[0]))
		}
		r.Budgets = append(r.Budgets, m.Row.Budgets(m.RepliesPerPing)...)
	}
	r.Conclusions, r.Notes = Explain(e, all), append([]string{columns(e)}, e.Sources...)
	var labs []*scenario.Scenario
	for i := range all {
		labs = append(labs, all[i].Row.Scenario)
	}
	r.Labs = topology.Distinct(labs...)
	r.Plots = []report.Plot{
		{Title: "Throughput of one TCP connection", Series: []report.Series{
			{Name: "iperf3", Field: "throughput_spread_bps"},
			{Name: "Heddle's own sender", Field: "stream_spread_bps"}}},
		{Title: "Replies to each ping", Series: []report.Series{{Field: "replies_per_ping"}}},
		{Title: "Frames that each ping puts on uplinks", Series: []report.Series{{Field: "ping_uplink_frames"}}},
		{Title: "Seconds of all processors per 10⁹ bytes", Series: []report.Series{{Field: "cpu_spread_s_per_gb"}}},
	}
	for _, m := range all {
		if len(m.Throughput) == 0 {
			r.Notes = append(r.Notes, "iperf3 is not installed: throughput is that of Heddle's own sender, and CPU "+
				"time was not measured.")
			break
		}
	}
	return r
}

// nestedRow is a row of the nested experiment; first is the row that ratios refer to.
func nestedRow(m, first Measured) report.Row {
	return append(report.Row{
		{Name: "name", Title: "row", Value: m.Row.Name},
		{Name: "setting", Value: m.Row.Setting, Hidden: true},
		{Name: "throughput_bps", Title: m.tool(), Value: median(m.rates()), Unit: report.BitsPerSecond},
		{Name: "stream_bps", Title: "own", Value: median(m.Stream), Unit: report.BitsPerSecond},
		{Name: "ratio", Value: ratio(m, first), Unit: report.None},
		{Name: "retransmits", Title: "retr", Value: m.Retransmits, Unit: report.Count},
		{Name: "replies_per_ping", Title: "replies", Value: m.RepliesPerPing},
		{Name: "load_p50_s", Title: "p50", Value: median(m.LoadP50), Unit: report.Seconds},
		{Name: "load_p99_s", Title: "p99", Value: median(m.LoadP99), Unit: report.Seconds},
		{Name: "duplicates", Title: "DUP after", Value: m.delays(), TableOnly: true},
		{Name: "duplicates_s", Value: m.Duplicates, Hidden: true},
		{Name: "uplink_frames", Title: "uplinks", Value: m.UplinkFrames, Unit: report.Count},
		{Name: "uplink_dropped_in", Title: "dropped in", Value: m.UplinkDroppedIn, Unit: report.Count},
		{Name: "uplink_dropped_out", Title: "out", Value: m.UplinkDroppedOut, Unit: report.Count},
		{Name: "cpu_s_per_gb", Title: "CPU s/GB", Value: median(m.CPU)},
		{Name: "figure", Title: "articles, Gb/s", Value: words(m.Row.Figure)},
	}, details(m)...)
}

// placementRow is a row of the placement experiment.
func placementRow(m Measured) report.Row {
	leaves := m.PingUplinkFrames >= 1
	return append(report.Row{
		{Name: "name", Title: "row", Value: m.Row.Name},
		{Name: "setting", Value: m.Row.Setting, Hidden: true},
		{Name: "leaves_host", Title: "leaves host", Value: leaves},
		{Name: "ping_uplink_frames", Title: "to uplinks/ping", Value: m.PingUplinkFrames},
		{Name: "rtt_s", Title: "round trip", Value: m.RTT, Unit: report.Seconds},
		{Name: "throughput_bps", Title: m.tool(), Value: median(m.rates()), Unit: report.BitsPerSecond},
		{Name: "stream_bps", Title: "own", Value: median(m.Stream), Unit: report.BitsPerSecond},
		{Name: "uplink_frames", Title: "to uplinks", Value: m.UplinkFrames, Unit: report.Count},
		{Name: "figure", Title: "article", Value: words(m.Row.Figure)},
		{Name: "retransmits", Value: m.Retransmits, Unit: report.Count, Hidden: true},
		{Name: "cpu_s_per_gb", Value: median(m.CPU), Hidden: true},
	}, spreads(m)...)
}

// details are values for programs besides the columns of the nested experiment's table.
func details(m Measured) report.Row {
	return append(report.Row{
		{Name: "rtt_s", Value: m.RTT, Unit: report.Seconds, Hidden: true},
		{Name: "ping_uplink_frames", Value: m.PingUplinkFrames, Hidden: true},
	}, spreads(m)...)
}

func spreads(m Measured) report.Row {
	return report.Row{
		{Name: "published", Value: words(m.Row.Published), Hidden: true},
		{Name: "uplink_bytes_per_byte", Value: m.uplinkShare(), Hidden: true},
		{Name: "throughput_spread_bps", Value: report.Summarise(m.rates()), Unit: report.BitsPerSecond, Hidden: true},
		{Name: "stream_spread_bps", Value: report.Summarise(m.Stream), Unit: report.BitsPerSecond, Hidden: true},
		{Name: "cpu_spread_s_per_gb", Value: report.Summarise(m.CPU), Hidden: true},
	}
}

// delays is how long after the first reply each duplicate came; nil without duplicates.
func (m Measured) delays() any {
	var parts []string
	for _, d := range m.Duplicates {
		parts = append(parts, report.Seconds.Format(d))
	}
	return words(strings.Join(parts, ", "))
}

// median is the middle of the rounds, nil ("not measured") without any.
func median(rounds []float64) any {
	if s := report.Summarise(rounds); s.Rounds > 0 {
		return s.Median
	}
	return nil
}

// words is a text, nil when it is empty.
func words(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// uplinkShare is the bytes handed to uplinks per byte of payload.
func (m Measured) uplinkShare() float64 { return m.UplinkBytes / m.Payload }

// rates are a row's rounds by iperf3 or, without iperf3, by our own sender.
func (m Measured) rates() []float64 {
	if len(m.Throughput) > 0 {
		return m.Throughput
	}
	return m.Stream
}

// tool is what measured them.
func (m Measured) tool() string {
	if len(m.Throughput) > 0 {
		return "iperf3"
	}
	return "TCP"
}

func (m Measured) bitsPerSecond() float64 { return report.Summarise(m.rates()).Median }

// ratio compares a row's throughput with the first row's, round by round.
func ratio(m, first Measured) any { return median(report.Ratios(m.rates(), first.rates())) }
