package docgen

import (
	"fmt"
	"strings"

	"heddle/internal/agent/metrics"
	controllermetrics "heddle/internal/controller/metrics"
)

const metricsIntro = `# Metrics

` + "`heddle agent --metrics 127.0.0.1:9946`" + ` serves these at ` + "`/metrics`" + ` for Prometheus; ` +
	"`heddle metrics`" + ` prints them. How to set that
up, with a dashboard and alerts: [monitoring.md](../how-to/one-host/monitoring.md). Beside them are those of every Go program (` + "`go_…`" + `) and of
the process (` + "`process_…`" + `).

- *Received* is from the owner into the switch, *sent* is the other way. A segmentation-offload frame counts once.
- Every frame received was delivered or dropped: ` + "`received − delivered`" +
	` is what was dropped, whatever the reason.
- Labels are names from the configuration and words of fixed lists, so no guest can make series: a port has 14, one more with MAC
  learning, and one for each reason and kind of loss that it ever had. Names: ` +
	"`switch`, `port`, `port_group`, `uplink`" + `. Words: ` + "`class`" + `
  (unicast, multicast, broadcast), ` + "`reason`" + ` (as in [reasons.md](reasons.md)), ` + "`state`" +
	` (up, down, blocked, pending, out), ` + "`kind`" + ` (rx-dropped,
  tx-dropped, rx-errors, tx-errors, rx-missed).
- A series marked * begins with its first frame. ` + "`rate()`" + ` sees what comes after that one.
- Counters go on across restarts of the agent, except those named ` + "`heddle_agent_…`, `heddle_probes_…`" +
	` and ` + "`heddle_failovers_total`" + `, which begin anew.

| metric | type | labels | meaning |
|---|---|---|---|
`

const controllerMetricsIntro = `
## Of a controller

A controller serves these at ` + "`/metrics`" + ` of its port for people and tools, for who shows a viewer's token, and with
` + "`--metrics 127.0.0.1:9947`" + ` on the loopback without one. Labels are words of fixed lists: how many series there are does not
depend on the number of hosts. Those of every Go program and of the process are beside them.

| metric | type | labels | meaning |
|---|---|---|---|
`

// metricsPage lists every metric.
func metricsPage() string {
	var b strings.Builder
	b.WriteString(generated("internal/agent/metrics") + metricsIntro)
	for _, f := range metrics.Families() {
		labels := strings.Join(f.Labels, ", ")
		if f.Lazy {
			labels += " *"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, labels, cell(f.Help))
	}
	b.WriteString(controllerMetricsIntro)
	for _, f := range controllermetrics.Families() {
		kind := metrics.Gauge
		if f.Counter {
			kind = metrics.Counter
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, kind, strings.Join(f.Labels, ", "), cell(f.Help))
	}
	return b.String()
}
