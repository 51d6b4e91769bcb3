package api

import (
	"context"
	"net/http"

	"heddle/api/heddle/agent/v1/agentv1connect"
	"heddle/internal/api/lookscope"
)

// Look says how far a call looks into a host. Only calls that look are passed on by a controller.
type Look int

// How far calls look.
const (
	// LooksNot: the call changes something, or is for the host's own commands alone.
	LooksNot Look = iota
	// LooksAt: state, counters, events, flows.
	LooksAt
	// LooksInto: frames of guests, by captures and traces. It takes a role of its own.
	LooksInto
)

// LookOf says how far a procedure of the contract looks.
func LookOf(procedure string) Look {
	switch procedure {
	case agentv1connect.StateServiceGetStateProcedure,
		agentv1connect.StateServiceGetProgressProcedure,
		agentv1connect.StateServiceGetMetricsProcedure,
		agentv1connect.StatsServiceListStatsProcedure,
		agentv1connect.StatsServiceListAccountsProcedure,
		agentv1connect.StatsServiceListVitalsProcedure,
		agentv1connect.StatsServiceListMacsProcedure,
		agentv1connect.EventServiceFollowEventsProcedure,
		agentv1connect.FlowServiceListFlowsProcedure,
		agentv1connect.FlowServiceGetFlowStatusProcedure,
		agentv1connect.FlowServiceFollowFlowTopProcedure,
		agentv1connect.FlowServiceFollowFlowRecordsProcedure,
		agentv1connect.FlowServiceFollowFlowSumsProcedure,
		agentv1connect.AdviseServiceAdviseProcedure,
		agentv1connect.ConfigServiceGetConfigProcedure,
		agentv1connect.ConfigServiceListConfigsProcedure,
		agentv1connect.ChangeServiceGetTrialProcedure,
		agentv1connect.ChangeServiceForeseeProcedure,
		agentv1connect.HostPortServiceListHostPortsProcedure,
		agentv1connect.HostPortServiceGetAdoptionProcedure,
		agentv1connect.MoveServiceListMovesProcedure,
		agentv1connect.NeighbourServiceListNeighboursProcedure,
		agentv1connect.ClusterServiceGetHostHealthProcedure,
		agentv1connect.ClusterServiceGetMembershipProcedure:
		return LooksAt
	case agentv1connect.TraceServiceTraceProcedure,
		agentv1connect.CaptureServiceCaptureProcedure,
		agentv1connect.CaptureServiceEndCaptureProcedure:
		return LooksInto
	}
	return LooksNot
}

// OfMove reports whether a procedure of the contract is one that a controller calls itself where a port moves, from
// host to host or on its host. It passes on none of them for people.
func OfMove(procedure string) bool {
	switch procedure {
	case agentv1connect.PortServiceConnectIncomingPortProcedure,
		agentv1connect.PortServiceMovePortProcedure,
		agentv1connect.PortServiceActivatePortProcedure,
		agentv1connect.MoveServiceCancelMoveProcedure:
		return true
	}
	return false
}

// OfBenchmark reports whether a procedure of the contract is one that a controller calls itself for a benchmark of the
// network. It passes on none of them for people.
func OfBenchmark(procedure string) bool {
	return procedure == agentv1connect.BenchmarkServiceRunBenchmarkProcedure ||
		procedure == agentv1connect.BenchmarkServiceEndBenchmarkProcedure
}

// Looking answers the calls of the contract that look, those of moves and of benchmarks, and refuses the others: it is
// for callers that come by way of a controller, and its calls say so (CameByController). Calls that follow something
// end with ctx.
func Looking(ctx context.Context, s Service) http.Handler {
	all := handler(ctx, s)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if LookOf(r.URL.Path) == LooksNot && !OfMove(r.URL.Path) && !OfBenchmark(r.URL.Path) {
			http.Error(w, "only calls that look pass a controller", http.StatusForbidden)
			return
		}
		ctx, err := lookscope.Read(ByController(r.Context()), r.Header.Get(lookscope.Header))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		all.ServeHTTP(w, r.WithContext(ctx))
	})
}

// VersionHeader is the header with the version of the contract's protocol, which both sides send.
const VersionHeader = versionHeader

// CallHeaders are the headers of a request that belong to a call: the others are between a caller and who passes it on.
func CallHeaders() []string {
	return []string{"Content-Type", "Connect-Protocol-Version", "Connect-Timeout-Ms", versionHeader}
}

// AnswerHeaders are those of an answer.
func AnswerHeaders() []string { return []string{"Content-Type", versionHeader} }
