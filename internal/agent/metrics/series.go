package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"heddle/internal/abi"
	"heddle/internal/host/hostdev"
)

// series are the families of one scrape while they are being filled.
type series struct{ of map[string]*dto.MetricFamily }

// newSeries allocates memory for that many ports.
func newSeries(ports int) *series {
	s := &series{of: map[string]*dto.MetricFamily{}}
	for _, f := range Families() {
		kind := dto.MetricType_COUNTER
		if f.Type == Gauge {
			kind = dto.MetricType_GAUGE
		}
		s.of[f.Name] = &dto.MetricFamily{Name: &f.Name, Help: &f.Help, Type: &kind,
			Metric: make([]*dto.Metric, 0, ports)}
	}
	return s
}

// families returns the families that have a series, and the others given, sorted by name.
func (s *series) families(others []*dto.MetricFamily) []*dto.MetricFamily {
	for _, f := range s.of {
		if len(f.Metric) > 0 {
			others = append(others, f)
		}
	}
	slices.SortFunc(others, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return others
}

// newLabels returns the labels, sorted by name.
func newLabels(names []string, values ...string) []*dto.LabelPair {
	out := make([]*dto.LabelPair, len(names))
	for i := range names {
		out[i] = pair(names[i], values[i])
	}
	slices.SortFunc(out, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

// pair returns a label. Names in a configuration are free text; invalid UTF-8 in one of them would make the whole
// scrape invalid.
func pair(name, value string) *dto.LabelPair {
	value = strings.ToValidUTF8(value, "\uFFFD")
	return &dto.LabelPair{Name: &name, Value: &value}
}

// with1 returns the labels with one more, in sorted order. The pairs are shared, because a port's many series have the
// same ones.
func with1(labels []*dto.LabelPair, name, value string) []*dto.LabelPair {
	at, _ := slices.BinarySearchFunc(labels, name, func(l *dto.LabelPair, name string) int {
		return strings.Compare(l.GetName(), name)
	})
	out := make([]*dto.LabelPair, 0, len(labels)+1)
	out = append(append(out, labels[:at]...), pair(name, value))
	return append(out, labels[at:]...)
}

func (s *series) gauge(name string, v float64, labels []*dto.LabelPair) {
	m := &struct {
		metric dto.Metric
		gauge  dto.Gauge
		value  float64
	}{value: v}
	m.gauge.Value, m.metric.Gauge, m.metric.Label = &m.value, &m.gauge, labels
	f := s.of[name]
	f.Metric = append(f.Metric, &m.metric)
}

func (s *series) count(name string, n uint64, labels []*dto.LabelPair) {
	m := &struct {
		metric  dto.Metric
		counter dto.Counter
		value   float64
	}{value: float64(n)}
	m.counter.Value, m.metric.Counter, m.metric.Label = &m.value, &m.counter, labels
	f := s.of[name]
	f.Metric = append(f.Metric, &m.metric)
}

func (s *series) classes(name string, labels []*dto.LabelPair, of *[abi.Classes]uint64) {
	s.count(name, of[abi.ClassUnicast], with1(labels, "class", "unicast"))
	s.count(name, of[abi.ClassMulticast], with1(labels, "class", "multicast"))
	s.count(name, of[abi.ClassBroadcast], with1(labels, "class", "broadcast"))
}

func (s *series) reasons(name string, labels []*dto.LabelPair, of map[abi.Reason]uint64) {
	if len(of) == 0 {
		return
	}
	for r := range abi.Reasons() {
		if n := of[r]; n > 0 {
			s.count(name, n, with1(labels, "reason", r.String()))
		}
	}
}

func (s *series) losses(name string, labels []*dto.LabelPair, l hostdev.Losses) {
	for _, c := range []struct {
		kind string
		n    uint64
	}{{"rx-dropped", l.RxDropped}, {"tx-dropped", l.TxDropped}, {"rx-errors", l.RxErrors}, {"tx-errors", l.TxErrors},
		{"rx-missed", l.RxMissed}} {
		if c.n > 0 {
			s.count(name, c.n, with1(labels, "kind", c.kind))
		}
	}
}

// goProgram returns the metrics that every Go program has.
func goProgram() []prometheus.Collector {
	return []prometheus.Collector{collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
}
