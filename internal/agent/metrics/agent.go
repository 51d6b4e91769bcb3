package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Agent counts what an agent does. A nil *Agent counts nothing. It may be used from any goroutine.
type Agent struct {
	apply     prometheus.Histogram
	failures  prometheus.Counter
	failovers *prometheus.CounterVec
}

// NewAgent returns counters at zero.
func NewAgent() *Agent {
	return &Agent{
		apply: prometheus.NewHistogram(prometheus.HistogramOpts{Name: applySeconds, Help: help(applySeconds),
			Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10}}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: applyFailures, Help: help(applyFailures)}),
		failovers: prometheus.NewCounterVec(prometheus.CounterOpts{Name: failovers, Help: help(failovers)},
			[]string{"switch"}),
	}
}

// Applied counts a plan that was written to the kernel, and how long that took.
func (a *Agent) Applied(took time.Duration) {
	if a != nil {
		a.apply.Observe(took.Seconds())
	}
}

// Failed counts a plan that could not be written to the kernel.
func (a *Agent) Failed() {
	if a != nil {
		a.failures.Inc()
	}
}

// FailedOver counts a failover on a switch.
func (a *Agent) FailedOver(sw string) {
	if a != nil {
		a.failovers.WithLabelValues(sw).Inc()
	}
}

// forget drops the series of switches that are gone, and starts those of new switches at 0: a rate needs a value before
// the first event.
func (a *Agent) forget(known map[string]bool, now []string) map[string]bool {
	next := make(map[string]bool, len(now))
	for _, sw := range now {
		next[sw] = true
		a.failovers.WithLabelValues(sw)
	}
	for sw := range known {
		if !next[sw] {
			a.failovers.DeleteLabelValues(sw)
		}
	}
	return next
}

func help(name string) string {
	for _, f := range Families() {
		if f.Name == name {
			return f.Help
		}
	}
	return ""
}
