package metrics

import (
	"bytes"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// Text returns all metrics in Prometheus' text format.
func Text(r prometheus.Gatherer) (string, error) {
	families, err := r.Gather()
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// Limits that keep scrapers from overloading the machine: the number of scrapes at the same time, and the time for
// each.
const (
	mostScrapes = 2
	scrapeWait  = 10 * time.Second
)

// Handler answers GET /metrics; for / it returns a link to it.
func Handler(r prometheus.Gatherer, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), MaxRequestsInFlight: mostScrapes,
		Timeout: scrapeWait}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		// a caller that has disconnected needs no answer
		_, _ = w.Write([]byte("<title>Heddle</title><a href=/metrics>metrics</a>\n"))
	})
	return mux
}
