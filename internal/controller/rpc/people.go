package rpc

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/api"
	"heddle/internal/controller/capability"
	"heddle/internal/controller/metrics"
	"heddle/internal/controller/segments"
	"heddle/internal/platform/access"
	"heddle/internal/platform/serve"
)

// people is the half of the server that people call.
type people struct{ *Server }

// Front is the side of a server on which people and tools are.
type Front struct{ *Server }

// calls are what people and tools call, each held against its rule and recorded.
func (s Front) calls() http.Handler {
	rpc := connect.NewServer(access.Contract, s.guard.Intercept)
	controllerv1connect.RegisterFleetServiceHandler(rpc, people(s))
	controllerv1connect.RegisterMemberServiceHandler(rpc, memberCalls{membersOf(s.Server), people(s)})
	controllerv1connect.RegisterAccessServiceHandler(rpc, deskOf(s.Server))
	controllerv1connect.RegisterStatusServiceHandler(rpc, people(s))
	controllerv1connect.RegisterRootServiceHandler(rpc, rotationOf(s.Server))
	controllerv1connect.RegisterMoveServiceHandler(rpc, moveCallsAt(s.Server))
	controllerv1connect.RegisterSegmentServiceHandler(rpc, segments.Service{Hub: s.segments,
		Defined: segmenting{s.fleet}.defined})
	controllerv1connect.RegisterHealthServiceHandler(rpc, s.network)
	controllerv1connect.RegisterHistoryServiceHandler(rpc, s.reader())
	controllerv1connect.RegisterRolloutServiceHandler(rpc, rolloutsOf(s.Server))
	controllerv1connect.RegisterBackupServiceHandler(rpc, s.backups)
	each(s.fleet.capabilities, func(_ capable, p capability.Server) { p.Register(rpc) })
	mux := http.NewServeMux()
	mux.Handle("POST "+lookPath, s.guard.Hold(lookPath, newLooks(s.Server, false)))
	mux.Handle("GET "+metricsPath, s.guard.Hold(metricsPath, s.Metrics()))
	connecthttp.Mount(mux, rpc, connecthttp.WithReadMaxBytes(maxAsked), connecthttp.WithCompressors(),
		api.StrictCodecs())
	return access.Versioned(mux)
}

// metricsPath is where a controller's metrics are.
const metricsPath = "/metrics"

// Metrics answers Prometheus.
func (s Front) Metrics() http.Handler {
	return promhttp.HandlerFor(metrics.New(metrics.Source{Status: s.Status, Calls: s.guard.Calls,
		Rollouts: openRollouts{s.fleet}.states, Drives: s.drives, Together: s.fleet.together.Tally.Counts,
		Refused: s.refused.Counts, Network: s.verdict}),
		promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn), MaxRequestsInFlight: 2,
			Timeout: 10 * time.Second})
}

// drives reports whether this controller drives rollouts.
func (s Front) drives() bool {
	own, _ := s.sight.Drives()
	return own
}

// People answers on the controller's own socket, whose mode says who may call.
func (s Front) People() http.Handler { return s.guard.Local(s.calls(), serve.SocketUser) }

// API answers people and tools who show a token: the listener is that of APIListener.
func (s Front) API() http.Handler {
	return s.guard.Remote(s.calls(), serve.Admit)
}

// APIListener makes TLS of a listener for people and tools. Who has not shown a token is bounded there.
func (s Front) APIListener(l net.Listener) net.Listener {
	return serve.NewListener(l, s.TLS.PeopleTLS(), s.refused, serve.Bounds{})
}

// APIServer is the server of API: requests are bounded in size and time.
func (s Front) APIServer() *http.Server {
	srv := s.HTTP(s.API())
	srv.IdleTimeout = time.Minute
	srv.HTTP2.MaxConcurrentStreams = 64
	srv.HTTP2.WriteByteTimeout = 30 * time.Second
	return srv
}
