package adapters

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/internal/lab/report"
	"heddle/internal/lab/report/topology"
)

// report makes the report of what was measured.
func (m *measured) report() *report.Report {
	r := &report.Report{Name: Name, Title: Title, Environment: report.Collect(time.Now())}
	for _, s := range m.settings() {
		r.Rows = append(r.Rows, m.row(s))
	}
	r.Notes = m.notes()
	r.Labs = topology.OfText(labText)
	return r
}

// reference is what the other settings are compared with, round by round: the first adapter as it comes.
func (m *measured) reference() setting { return setting{m.adapters[0].name, true, m.mtus[0]} }

func (m *measured) row(s setting) report.Row {
	row := report.Row{{Name: "adapter", Value: s.adapter}, {Name: "offloads", Value: onOff(s.offloads)},
		{Name: "mtu", Value: s.mtu, Unit: report.Count}}
	for d, name := range []string{"sends", "receives"} {
		rates := m.rates(s, direction(d))
		ratio := report.Summarise(report.Ratios(rates, m.rates(m.reference(), direction(d))))
		row = append(row,
			report.Field{Name: name + "_bps", Title: name, Value: report.Summarise(rates), Unit: report.BitsPerSecond},
			report.Field{Name: name + "_ratio", Title: "ratio", Value: ratio, Unit: report.Ratio},
			report.Field{Name: name + "_bytes_per_frame", Hidden: true, Unit: report.Bytes,
				Value: report.Summarise(m.of(s, direction(d), func(x sample) float64 { return x.perFrame }))})
	}
	return row
}

func (m *measured) of(s setting, d direction, value func(sample) float64) (list []float64) {
	for _, x := range m.samples[s][d] {
		list = append(list, value(x))
	}
	return list
}

func (m *measured) rates(s setting, d direction) []float64 {
	return m.of(s, d, func(x sample) float64 { return x.bitsPerSecond })
}

// notes say how it was measured, and what of it carries over to other machines.
func (m *measured) notes() []string {
	notes := []string{
		fmt.Sprintf(
			"One TCP stream between a guest and a network namespace behind another port of the same switch, in "+
				"%d rounds of %v after %v; the settings take turns in each round. Values are the middle of the "+
				"rounds. "+
				"ratio: to %s, round by round.", m.rounds, m.duration, m.warmup, m.reference()),
		fmt.Sprintf("The guests run Linux %s under QEMU's emulation (TCG), without hardware virtualization and "+
			"vhost: a "+
			"copy and a checksum of a guest cost many times what they cost a real one. The rates are the emulator's. "+
			"What carries over is the ratios' direction, not their size.", m.kernel),
	}
	if slices.ContainsFunc(m.adapters, func(a adapter) bool { return a.queues > 1 }) {
		notes = append(notes, "With two queues a guest has two CPUs, which the emulator runs in one thread: this "+
			"shows what "+
			"the second queue costs one stream, and cannot show what it brings many.")
	}
	for _, s := range m.settings() {
		for d, what := range []string{"sends", "receives"} {
			if n := m.silent[silence{s, direction(d)}]; n > 0 {
				notes = append(notes, fmt.Sprintf("%s, %s: nothing was carried in %d of %d rounds.", s, what, n,
					m.rounds))
			}
		}
	}
	for _, a := range m.adapters {
		if fixed := m.fixed[a.name]; len(fixed) > 0 {
			notes = append(notes, fmt.Sprintf("%s: its driver does not turn off %s.", a.name,
				strings.Join(fixed, ", ")))
		}
	}
	return notes
}
