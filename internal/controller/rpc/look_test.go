package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	"heddle/api/heddle/agent/v1/agentv1connect"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
)

// looked is a controller with a host that answers calls, and where people ask.
func looked(t *testing.T, h http.HandlerFunc) (*controller, *machine, string) {
	t.Helper()
	c := newController(t)
	c.define(clusterText)
	m := c.joins("esx1")
	m.calls = h
	m.start()
	c.await("it is up", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
	srv := httptest.NewServer(Front{c.Server}.People())
	t.Cleanup(srv.Close)
	return c, m, srv.URL
}

const getState = agentv1connect.StateServiceGetStateProcedure

// askHost asks a host, by way of the controller.
func askHost(ctx context.Context, url, host, procedure, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/hosts/"+host+procedure, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Cookie", "secret=1")
	r.Header.Set(api.VersionHeader, strconv.Itoa(api.Version))
	return http.DefaultClient.Do(r)
}

// answered is the whole answer.
func answered(t *testing.T, url, host, procedure, body string) (status int, text string) {
	t.Helper()
	resp, err := askHost(t.Context(), url, host, procedure, body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// A call comes to the host as it was made, and its answer back whole, however large it is; the host's slice passes in
// between.
func TestLooking_CallsAndAnswersPass(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
	c, m, url := looked(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != getState || string(body) != `{"a":1}` || r.Header.Get("Content-Type") != "application/json" ||
			r.Header.Get("Cookie") != "" || r.Header.Get(api.VersionHeader) != strconv.Itoa(api.Version) {
			w.WriteHeader(http.StatusTeapot)
		}
		w.Header().Set("Content-Type", "text/x")
		_, _ = w.Write(large)
	})
	resp, err := askHost(t.Context(), url, "esx1", getState, `{"a":1}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	// The answer waits for its reader; the host is handed another definition meanwhile.
	c.define(clusterText + "- {name: g1, labels: {rack: b}}\n")
	c.await("it is up", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
	got, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Equal(got, large) || resp.StatusCode != http.StatusOK ||
		resp.Header.Get("Content-Type") != "text/x" {
		t.Errorf("%d, %d of %d bytes, %v, %v", resp.StatusCode, len(got), len(large), resp.Header, err)
	}
	if m.lost() != 0 {
		t.Errorf("the conversation ended: %v", m.said)
	}
}

// What does not look, goes to nobody, or is too large is refused with a sentence, and comes to no host.
func TestLooking_Refusals(t *testing.T) {
	var came atomic.Int32
	c, m, url := looked(t, func(http.ResponseWriter, *http.Request) { came.Add(1) })
	c.up("esx2") // which answers no calls
	for _, row := range []struct{ name, host, procedure, body, says string }{
		{"it changes something", "esx1", agentv1connect.PortServiceBlockPortProcedure, "{}",
			`"permission_denied","message":"a controller passes on only calls that look`},
		{"it stops the agent", "esx1", agentv1connect.StateServiceStopAgentProcedure, "{}", `"permission_denied"`},
		{"nothing knows it", "esx1", "/heddle.agent.v1.StateService/Other", "{}", `"permission_denied"`},
		{"another contract", "esx1", "/heddle.controller.v1.FleetService/RemoveHost", "{}", `"permission_denied"`},
		{"no such host", "esx9", getState, "{}", `"not_found","message":"the cluster has no host \"esx9\"`},
		{"an older agent", "esx2", getState, "{}",
			`"unimplemented","message":"its agent (version test) answers no calls`},
		{"it is too large", "esx1", getState, strings.Repeat("x", mostRequest+1), `"invalid_argument"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			status, text := answered(t, url, row.host, row.procedure, row.body)
			if status < 400 || !strings.Contains(text, row.says) {
				t.Errorf("%d %s, want %s", status, text, row.says)
			}
		})
	}
	m.stop()
	c.await("it is away", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_DISCONNECTED })
	if _, text := answered(t, url, "esx1", getState, "{}"); !strings.Contains(text,
		`"unavailable","message":"it is not connected`) {
		t.Error(text)
	}
	if came.Load() != 0 {
		t.Errorf("%d calls came to the host", came.Load())
	}
}

// Who looks into frames is in the audit log, and who looks at anything else is not.
func TestLooking_IntoFramesIsRecorded(t *testing.T) {
	c, _, url := looked(t, func(http.ResponseWriter, *http.Request) {})
	recorded := func() (lines []string) {
		list := must(deskOf(c.Server).ListAudit(t.Context(), &controllerv1.ListAuditRequest{Most: 100}))(t)
		for _, e := range list.GetEntries() {
			if len(e.GetObjects()) == 1 && e.GetObjects()[0] == "host=esx1" {
				lines = append(lines, e.GetCall())
			}
		}
		return lines
	}
	before := recorded()
	answered(t, url, "esx1", getState, "{}")
	if got := recorded(); !slices.Equal(got, before) {
		t.Errorf("a call that does not look into frames is recorded: %q", got)
	}
	answered(t, url, "esx1", agentv1connect.TraceServiceTraceProcedure, "{}")
	if got := recorded(); !slices.Equal(got, append(slices.Clone(before), "Trace")) {
		t.Errorf("recorded: %q, before: %q", got, before)
	}
}

// The audit log says of a call that looks into frames whether it failed, and why; a caller that leaves is no failure.
func TestLooking_AFailureIsRecordedAsOne(t *testing.T) {
	began := make(chan struct{})
	c, m, url := looked(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == agentv1connect.TraceServiceTraceProcedure {
			panic("a fault of the agent")
		}
		_, _ = w.Write(make([]byte, 100))
		w.(http.Flusher).Flush()
		close(began)
		<-r.Context().Done()
	})
	last := func() (call, result, why string) {
		list := must(deskOf(c.Server).ListAudit(t.Context(), &controllerv1.ListAuditRequest{Most: 100}))(t)
		for _, e := range slices.Backward(list.GetEntries()) {
			if len(e.GetObjects()) == 1 && strings.HasPrefix(e.GetObjects()[0], "host=") {
				result := strings.ToLower(strings.TrimPrefix(e.GetResult().String(), "AUDIT_RESULT_"))
				return e.GetCall(), result, e.GetError()
			}
		}
		return "", "", ""
	}
	recorded := func(call, result, why string) {
		t.Helper()
		c.await(call+" is recorded as "+result+" "+why, func() bool {
			gotCall, gotResult, gotWhy := last()
			return gotCall == call && gotResult == result && strings.Contains(gotWhy, why) &&
				(why != "") == (gotWhy != "")
		})
	}
	answered(t, url, "esx1", agentv1connect.TraceServiceTraceProcedure, "{}")
	recorded("Trace", "failed", "the host did not complete its answer: the agent gave the answer up")

	ctx, leave := context.WithCancel(t.Context())
	resp, err := askHost(ctx, url, "esx1", agentv1connect.CaptureServiceCaptureProcedure, "{}")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-began
	leave()
	recorded("Capture", "done", "")

	m.stop()
	c.await("it is away", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_DISCONNECTED })
	answered(t, url, "esx1", agentv1connect.TraceServiceTraceProcedure, "{}")
	recorded("Trace", "failed", "it is not connected to a controller")
}

// A reader that does not read keeps the host from sending more than a window; one that leaves ends the call there.
func TestLooking_ASlowReaderHoldsNobodyUp(t *testing.T) {
	var written atomic.Int64
	ended := make(chan struct{})
	c, m, url := looked(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != getState {
			return
		}
		defer close(ended)
		for b := make([]byte, piece); ; written.Add(int64(len(b))) {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	})
	ctx, leave := context.WithCancel(t.Context())
	resp, err := askHost(ctx, url, "esx1", getState, "{}")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	c.await("the host waits for the reader", func() bool {
		c.fleet.mu.Lock()
		defer c.fleet.mu.Unlock()
		for _, q := range c.fleet.names["esx1"].conn.calls.open {
			q.mu.Lock()
			full := q.granted < piece
			q.mu.Unlock()
			return full
		}
		return false
	})
	c.define(clusterText + "- {name: g1, labels: {rack: b}}\n")
	c.await("it is up", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
	answered(t, url, "esx1", agentv1connect.StatsServiceListStatsProcedure, "{}") // others are answered
	leave()
	<-ended
	if m.lost() != 0 {
		t.Errorf("the conversation ended: %v", m.said)
	}
}

// piece is what is written at once.
const piece = 32 << 10

// An answer that a host cannot complete is no whole answer, whatever the reason.
func TestLooking_ABrokenAnswerIsNotTakenForAWholeOne(t *testing.T) {
	c, m, url := looked(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case getState:
			panic("a fault of the agent")
		default:
			_, _ = w.Write(make([]byte, 100))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	if _, text := answered(t, url, "esx1", getState, "{}"); !strings.Contains(text,
		"the host did not complete its answer: the agent gave the answer up") {
		t.Error(text)
	}
	if m.lost() != 0 {
		t.Errorf("the conversation ended: %v", m.said)
	}
	type whole struct {
		n   int
		err error
	}
	begun, got := make(chan struct{}), make(chan whole, 1)
	go func() {
		var begin sync.Once
		defer begin.Do(func() { close(begun) })
		resp, err := askHost(t.Context(), url, "esx1", agentv1connect.StatsServiceListStatsProcedure, "{}")
		if err != nil {
			got <- whole{0, err}
			return
		}
		defer resp.Body.Close()
		if _, err = io.ReadFull(resp.Body, make([]byte, 100)); err != nil {
			got <- whole{0, err}
			return
		}
		begin.Do(func() { close(begun) })
		b, err := io.ReadAll(resp.Body)
		got <- whole{100 + len(b), err}
	}()
	<-begun // the reader has the beginning: an error instead of the answer would come too late
	m.stop()
	if w := <-got; w.err == nil || !errors.Is(w.err, io.ErrUnexpectedEOF) {
		t.Errorf("%d bytes, %v", w.n, w.err)
	}
	c.await("it is logged", func() bool { return c.log.count("an answer of a host was cut off", "esx1") == 1 })
}

// A host answers a bounded number of calls at a time; those after are refused, until some have ended.
func TestLooking_TooManyCalls(t *testing.T) {
	var open atomic.Int32
	end := make(chan struct{})
	c, _, url := looked(t, func(_ http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Add(-1)
		select {
		case <-end:
		case <-r.Context().Done():
		}
	})
	done := make(chan error, mostCallsOfHost)
	for range mostCallsOfHost {
		go func() {
			resp, err := askHost(t.Context(), url, "esx1", getState, "{}")
			if err == nil {
				err = resp.Body.Close()
			}
			done <- err
		}()
	}
	c.await("all are under way", func() bool { return open.Load() == mostCallsOfHost })
	if _, text := answered(t, url, "esx1", getState, "{}"); !strings.Contains(text,
		`"resource_exhausted","message":"too many people look at this host`) {
		t.Error(text)
	}
	close(end)
	for range mostCallsOfHost {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	c.await("the host has room", func() bool {
		status, _ := answered(t, url, "esx1", getState, "{}")
		return status == http.StatusOK
	})
}

// A host that sends more than it may, or what makes no sense, is not believed.
func TestLooking_AHostThatDoesNotKeepToTheRules(t *testing.T) {
	for _, row := range []struct {
		name  string
		parts []*controllerv1.HostAnswer
		code  connect.Code
	}{
		{"too much", []*controllerv1.HostAnswer{{Begin: &controllerv1.HostAnswerBegin{Status: 200}},
			{Data: make([]byte, window)}, {Data: make([]byte, 1)}}, connect.CodeInternal},
		{"data before the beginning", []*controllerv1.HostAnswer{{Data: []byte("x")}}, connect.CodeInternal},
		{"two beginnings", []*controllerv1.HostAnswer{{Begin: &controllerv1.HostAnswerBegin{Status: 200}},
			{Begin: &controllerv1.HostAnswerBegin{Status: 200}}}, connect.CodeInternal},
		{"no status of HTTP", []*controllerv1.HostAnswer{{Begin: &controllerv1.HostAnswerBegin{Status: 7}}},
			connect.CodeInternal},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &conn{wake: make(chan struct{}, 1)}
			q, err := c.call(&controllerv1.HostCallBegin{Procedure: getState})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range row.parts {
				a.Call = q.id
				c.calls.answered(a)
			}
			w := httptest.NewRecorder()
			if _, err := q.copy(t.Context(), w, http.NewResponseController(deadlines{w})); connect.CodeOf(err) !=
				row.code {
				t.Errorf("%v, want %v", err, row.code)
			}
			c.calls.answered(&controllerv1.HostAnswer{Call: 99, Data: []byte("of no call")})
		})
	}
}

// deadlines is a recorder that takes deadlines.
type deadlines struct{ *httptest.ResponseRecorder }

func (deadlines) SetWriteDeadline(time.Time) error { return nil }

// A host looks at no other one: where agents call, only controllers pass calls on.
func TestLooking_HostsDoNotLookAtEachOther(t *testing.T) {
	var came atomic.Int32
	c, m, _ := looked(t, func(http.ResponseWriter, *http.Request) { came.Add(1) })
	conf := must(m.record.TLS())(t)
	transport := &http.Transport{TLSClientConfig: conf}
	defer transport.CloseIdleConnections()
	r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+c.address+"/hosts/esx1"+getState,
		strings.NewReader("{}")))(t)
	r.Header.Set("Content-Type", "application/json")
	resp := must((&http.Client{Transport: transport}).Do(r))(t)
	defer resp.Body.Close()
	text := must(io.ReadAll(resp.Body))(t)
	if !strings.Contains(string(text), "this is for the controllers of the cluster") || came.Load() != 0 {
		t.Errorf("%d %s, %d calls", resp.StatusCode, text, came.Load())
	}
}
