package api

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"
)

// changing are the calls of the contract that do not pass a controller.
func changing() []string {
	return []string{
		"BenchmarkService/EndBenchmark", "BenchmarkService/RunBenchmark", "ChangeService/Apply",
		"ChangeService/ConfirmTrial",
		"ClusterService/HandOver", "ClusterService/JoinCluster", "ClusterService/LeaveCluster",
		"HostPortService/Adopt", "HostPortService/ConfirmAdoption", "HostPortService/ReleaseAdoption",
		"MoveService/CancelMove", "MoveService/CopyMovingPort", "MoveService/ReleaseMovedPort",
		"MoveService/SilencePort",
		"PortService/ActivatePort", "PortService/BlockPort", "PortService/ConnectIncomingPort",
		"PortService/ConnectPort", "PortService/DisconnectPort", "PortService/ExpectGuest", "PortService/MovePort",
		"PortService/ReconnectPort",
		"StateService/StopAgent", "StatsService/ForgetMacs", "UplinkService/MaintainUplink",
	}
}

// A call of the contract passes a controller or not because somebody decided so: a new one is in one of the lists.
func TestLooking_EachCallIsDecided(t *testing.T) {
	rpc := connect.NewServer()
	(&adapter{}).register(rpc)
	var not, into []string
	for spec := range rpc.Specs() {
		name := strings.TrimPrefix(spec.Procedure, "/heddle.agent.v1.")
		switch LookOf(spec.Procedure) {
		case LooksNot:
			not = append(not, name)
		case LooksInto:
			into = append(into, name)
		}
	}
	slices.Sort(not)
	slices.Sort(into)
	if !slices.Equal(not, changing()) {
		t.Errorf("these do not pass:\n%q\nwant\n%q", not, changing())
	}
	want := []string{"CaptureService/Capture", "CaptureService/EndCapture", "TraceService/Trace"}
	if !slices.Equal(into, want) {
		t.Errorf("these look into frames: %q, want %q", into, want)
	}
}

// A host refuses by itself what does not look, whatever the controller lets pass.
func TestLooking_TheHostRefusesTheOthers(t *testing.T) {
	s := &echo{}
	h := Looking(t.Context(), s)
	for _, call := range append(changing(), "StateService/Nothing", "../PortService/BlockPort") {
		if OfMove("/heddle.agent.v1."+call) || OfBenchmark("/heddle.agent.v1."+call) {
			continue
		}
		t.Run(call, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/heddle.agent.v1.x", strings.NewReader("{}"))
			r.URL.Path = "/heddle.agent.v1." + call
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set(VersionHeader, strconv.Itoa(Version))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusForbidden || w.Body.String() != "only calls that look pass a controller\n" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}
