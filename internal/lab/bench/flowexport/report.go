package flowexport

import (
	"fmt"
	"math"
	"slices"

	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
)

func (r *run) report(env report.Environment) *report.Report {
	rep := &report.Report{Name: "bench flow-export", Environment: env}
	for _, c := range r.cells {
		for _, cfg := range r.configs {
			rep.Rows = append(rep.Rows, r.row(c, cfg))
		}
	}
	rep.Rows = append(rep.Rows, r.alone.row()...)
	rep.Budgets = slices.Concat(r.rateBudgets(), r.costBudgets(), r.scaleBudgets(), r.spreads.budgets(r.cells, r.opts))
	if b, ok := r.exportBudget(); ok {
		rep.Budgets = append(rep.Budgets, b, r.accounts.budget())
	}
	rep.Notes, rep.Plots = r.notes(), plots()
	return rep
}

func (o Options) rowTitle() string {
	if len(o.Queues) > 0 {
		return "cell ×pairs, adapter/queues, configuration"
	}
	return "cell ×pairs, configuration"
}

// row is a cell in a configuration.
func (r *run) row(c cell, cfg configuration) report.Row {
	rates := r.rates(c, cfg)
	row := report.Row{
		{Name: "row", Title: r.opts.rowTitle(), Value: fmt.Sprintf("%s, %s", c.title(), cfg.name()), TableOnly: true},
		{Name: "cell", Value: c.name, Hidden: true},
		{Name: "pairs", Value: c.pairs, Hidden: true},
		{Name: "configuration", Value: cfg.name(), Hidden: true},
		{Name: "unit", Value: string(c.unit), Hidden: true},
		{Name: "value", Title: "rate", Value: report.Summarise(rates), Unit: c.unit, Brief: true},
		{Name: "value_published", Title: "article's", Value: orNil(article(c, cfg).rate), Unit: c.unit},
	}
	row = append(row, c.adapterFields()...)
	if cfg.metering == off {
		same := r.kept(c, cfg)
		row = append(row, report.Field{Name: "ratio_baseline", Value: nil, Hidden: true},
			report.Field{Name: "ratio_again", Title: "of other baselines", Value: same, Unit: report.Ratio},
			report.Field{Name: "ratio_again_resolution", Value: r.standardError(cfg, same), Unit: report.Ratio,
				Hidden: true})
		row = append(row, r.spreads.fields(c)...)
	} else {
		row = append(row, r.lossFields(c, cfg)...)
		row = append(row, r.costFields(c, cfg)...)
	}
	for _, h := range sides {
		records, agent := r.exports(c, cfg, h)
		row = append(row,
			report.Field{Name: "program_s_" + h.String(), Value: report.Summarise(r.perRun(c, cfg, h)),
				Unit: report.Seconds, Hidden: true},
			report.Field{Name: "agent_cores_" + h.String(), Value: report.Summarise(agent), Hidden: true},
			report.Field{Name: "records_per_s_" + h.String(), Value: report.Summarise(records), Unit: report.PerSecond,
				Hidden: true})
	}
	return append(row, r.transactionFields(c, cfg)...)
}

func (s side) String() string { return [...]string{"tx", "rx"}[s] }

// lossFields compare with the baseline of the same background and, like the article, with the one without any.
func (r *run) lossFields(c cell, cfg configuration) []report.Field {
	like, plain := r.kept(c, cfg), r.keptOfPlain(c, cfg)
	fields := []report.Field{
		{Name: "ratio_baseline", Title: "of baseline (quartiles)", Value: like, Unit: report.Ratio},
		{Name: "ratio_resolution", Title: "standard error", Value: r.standardError(cfg, like), Unit: report.Ratio},
		{Name: "loss_percent", Title: "loss", Value: percent(like), Unit: report.Percent, Brief: true},
		{Name: "loss_published", Title: "article's", Value: nil},
		{Name: "loss_published_percent", Value: article(c, cfg).loss.percent(), Unit: report.Percent, Hidden: true},
	}
	if l := article(c, cfg).loss; l != nil {
		fields[3].Value = l.String()
	}
	if cfg.background {
		fields = append(fields, report.Field{Name: "loss_percent_without_background", Title: "loss to none in " +
			"background", Value: percent(plain), Unit: report.Percent, Brief: true})
	}
	return fields
}

// percent is the loss that corresponds to a ratio.
func percent(kept report.Spread) report.Spread {
	loss := func(part float64) float64 { return 100 * (1 - part) }
	return report.Spread{Median: loss(kept.Median), Q1: loss(kept.Q3), Q3: loss(kept.Q1), Min: loss(kept.Max),
		Max: loss(kept.Min), Rounds: kept.Rounds}
}

func orNil(x float64) any {
	if x == 0 {
		return nil
	}
	return x
}

// costFields are what metering took on each host.
func (r *run) costFields(c cell, cfg configuration) []report.Field {
	p := article(c, cfg)
	fields := []report.Field{{Name: "cost_per", Title: "cores per", Value: c.perName}}
	for _, h := range sides {
		all, program, agent := r.costs(c, cfg, h)
		name, theirs := "cost_"+h.String(), orNil([...]float64{p.tx, p.rx}[h])
		fields = append(fields,
			report.Field{Name: name, Title: [...]string{"TX", "RX"}[h], Value: report.Summarise(all), Brief: true},
			report.Field{Name: name + "_program", Value: report.Summarise(program), Hidden: true},
			report.Field{Name: name + "_agent", Value: report.Summarise(agent), Hidden: true},
			report.Field{Name: name + "_published", Title: "article's", Value: theirs})
		if of := plotted(c, h); of != "" {
			fields = append(fields,
				report.Field{Name: of, Value: report.Summarise(all), Hidden: true},
				report.Field{Name: of + "_published", Value: theirs, Hidden: true})
		}
	}
	same := r.cpuRatio(c, cfg)
	return append(fields, report.Field{Name: "cost_machine", Value: report.Summarise(r.machine(c, cfg)), Hidden: true},
		report.Field{Name: "cpu_ratio_baseline", Title: "CPU of baseline", Value: same, Unit: report.Ratio},
		report.Field{Name: "cpu_ratio_resolution", Title: "standard error", Value: r.standardError(cfg, same),
			Unit: report.Ratio})
}

// plotted names the cost of a cell by its unit: costs of two units are in two charts.
func plotted(c cell, h side) string {
	switch c.kind {
	case traffic.KindUDP:
		return "cores_per_100kpps_" + h.String()
	case traffic.KindCRR:
		return "cores_per_1000tps_" + h.String()
	}
	return ""
}

// plots are the article's figures and tables as charts.
func plots() []report.Plot {
	cost := func(title, field string) report.Plot {
		return report.Plot{Title: title, Series: []report.Series{
			{Name: "TX", Field: field + "_tx"}, {Name: "RX", Field: field + "_rx"},
			{Name: "TX, article", Field: field + "_tx_published", Reference: true},
			{Name: "RX, article", Field: field + "_rx_published", Reference: true}}}
	}
	return []report.Plot{
		{Title: "Loss of rate to the baseline", Series: []report.Series{
			{Name: "Heddle", Field: "loss_percent"}, {Name: "VDS, article", Field: "loss_published_percent",
				Reference: true}}},
		cost("Cores that metering takes per 100 kpps", "cores_per_100kpps"),
		cost("Cores that metering takes per 1,000 transactions per second", "cores_per_1000tps"),
	}
}

// transactionFields are the values of a cell of transactions besides its rate, and the lost packets.
func (r *run) transactionFields(c cell, cfg configuration) []report.Field {
	var fields []report.Field
	switch c.kind {
	case traffic.KindCRR:
		// each(…) of them are always under way (Little's law)
		each := func(s sample) float64 { return float64(c.sessions*c.pairs) / s.rate }
		fields = append(fields,
			report.Field{Name: "latency_mean_s", Value: report.Summarise(r.each(c, cfg, each)), Unit: report.Seconds,
				Hidden: true},
			report.Field{Name: "exported_part", Value: r.keepsUp(c, cfg), Unit: report.Ratio, Hidden: true})
	case traffic.KindUDP:
		lost := r.each(c, cfg, func(s sample) float64 { return s.lost })
		fields = append(fields, report.Field{Name: "lost_on_path", Value: report.Summarise(lost), Unit: report.Ratio,
			Hidden: true})
	}
	return append(fields, report.Field{Name: "samples", Value: r.rates(c, cfg), Hidden: true})
}

// compared are the configurations that are compared with a baseline, metered those of them with metering.
func (r *run) compared() []configuration {
	return slices.DeleteFunc(slices.Clone(r.configs), func(c configuration) bool { return c.metering == off })
}

func (r *run) metered() []configuration {
	return slices.DeleteFunc(slices.Clone(r.configs), func(c configuration) bool { return !c.metering.meters() })
}

// rateBudgets check, for each cell, the worst of its configurations.
func (r *run) rateBudgets() (budgets []report.Budget) {
	for _, c := range r.cells {
		if c.emulated() {
			continue
		}
		worst, which := report.Spread{Median: math.Inf(1)}, configuration{}
		for _, cfg := range r.metered() {
			if s := r.kept(c, cfg); s.Rounds > 0 && s.Median < worst.Median {
				worst, which = s, cfg
			}
		}
		if len(r.metered()) > 0 {
			name := fmt.Sprintf("%s: %s / baseline, the lowest", c, which.name())
			budgets = append(budgets, report.Hold(name, worst.Median, report.Ratio, report.AtLeast, c.atLeast).Resolve(
				r.standardError(which, worst)))
		}
	}
	return budgets
}

// exportBudget checks that every host exported in every metered configuration; otherwise the cost of exporting was not
// measured.
func (r *run) exportBudget() (report.Budget, bool) {
	want, got := 0, 0
	for _, m := range []metering{uni, bi} {
		if !slices.ContainsFunc(r.configs, func(c configuration) bool { return c.metering == m }) {
			continue
		}
		for _, s := range sides {
			want++
			if r.exported[source{m, s}].records > 0 {
				got++
			}
		}
	}
	return report.Hold("hosts × meterings that exported records", float64(got), report.Count, report.Exactly,
		float64(want)), want > 0
}

func (r *run) notes() []string {
	notes := slices.Concat(r.methodNotes(), r.opts.queueNotes(r.cells), r.sameNotes())
	if s := r.scanNote(); s != "" {
		notes = append(notes, s)
	}
	notes = append(notes, r.lagNotes()...)
	if n := r.rig.unfinished; n > 0 {
		notes = append(notes, fmt.Sprintf("%d times the agents were not done with the flows of one measurement %v "+
			"after its end, and went on beside the next.", n, endPatience))
	}
	if e := r.exportNote(); e != "" {
		notes = append(notes, e, r.accounts.String())
	}
	return append(notes, "The article is \"VDS IPFIX performance with NSX-V and vRNI\", VMware knowledge base "+
		"314383, https://knowledge.broadcom.com/external/article/314383: ESXi 6.8, two hosts of 24 cores, 10 Gb/s "+
		"between them; its figures are quoted, not measured here.")
}
