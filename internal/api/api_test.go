package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/diagnose"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// echo answers with the request, or with an error.
type echo struct {
	err error
	got any
}

func (e *echo) State(context.Context) (*State, error) {
	return &State{Switches: []Switch{}, PortGroups: []PortGroup{}, Uplinks: []Uplink{},
		Ports: []Port{{Name: "p", Effective: []plan.Row{{Policy: "blocked", Value: plan.FieldValueOf(false),
			From: plan.Source{Level: plan.FromPort, Name: "p"}}}}}}, e.err
}
func (e *echo) Stats(context.Context) ([]Stats, error) {
	return []Stats{{Name: "p", Counters: []Counter{{"packetsInUnicast", 1 << 60}}}}, e.err
}
func (e *echo) Foresee(_ context.Context, q Foresee) (*diagnose.Foreseen, error) {
	return &diagnose.Foreseen{Looked: len(q.Put)}, e.err
}

func (e *echo) Trace(_ context.Context, q diagnose.Request) (*diagnose.Report, error) {
	return &diagnose.Report{From: q.From, Agree: true}, nil
}

func (e *echo) Advise(_ context.Context, q AdviseRequest) (*Advice, error) {
	return &Advice{MeasuredSeconds: q.For.Seconds()}, e.err
}

// someDay is a time for answers.
var someDay = time.Date(2026, 11, 23, 4, 0, 0, 5e6, time.UTC)

func (e *echo) Vitals(context.Context) ([]Vitals, error)              { return nil, e.err }
func (e *echo) Accounts(context.Context) ([]PortAccount, error)       { return nil, e.err }
func (e *echo) Metrics(context.Context) (string, error)               { return "heddle_agent_info 1\n", e.err }
func (e *echo) ForgetMACs(context.Context, ForgetMACs) ([]MAC, error) { return nil, nil }

func (e *echo) Neighbours(_ context.Context, q NeighbourQuery) (*Neighbours, error) {
	e.got = q
	return &Neighbours{Neighbours: []BoundAddress{{Address: "192.0.2.1", Whose: OwnerTold, AgeSeconds: 1.5}}}, e.err
}

func (e *echo) MACs(context.Context) ([]MAC, error) {
	return []MAC{{MAC: "02:00:00:00:00:01", IdleSeconds: 1.5}}, e.err
}
func (e *echo) Apply(_ context.Context, q Apply) (*Applied, error) {
	e.got = q
	return &Applied{Changes: []Change{{Kind: Changed, Object: ObjectRef{Kind: SwitchObject, Name: "lab"},
			Field: "mtu", Old: plan.FieldValueOf(1500), New: plan.FieldValueOf(9000)}}},
		e.err
}
func (e *echo) Connect(_ context.Context, q Connect) (*Applied, error) {
	e.got = q
	return &Applied{Warnings: []string{"w"}}, e.err
}
func (e *echo) Reconnect(_ context.Context, q Connect) (*Applied, error) {
	q.Name += " again"
	e.got = q
	return &Applied{}, e.err
}
func (e *echo) ConnectIncoming(_ context.Context, q Incoming) (*Applied, error) {
	q.Name += " to come"
	e.got = q
	return &Applied{}, e.err
}
func (e *echo) Expect(_ context.Context, q Expect) error     { e.got = q; return e.err }
func (e *echo) Activate(_ context.Context, q Activate) error { e.got = q; return e.err }

func (e *echo) PortMoves(_ context.Context, q PortMoveOf) ([]PortMove, error) {
	e.got = q
	return []PortMove{{Move: "m", Side: MoveTarget, Phase: "copied",
		Steps: []MoveStep{{"prepared", someDay, "t"}}}}, e.err
}
func (e *echo) CopyMovingPort(_ context.Context, q PortMoveOf) (*PortMove, error) {
	e.got = q
	return &PortMove{Move: "m", Copies: 3, Steps: []MoveStep{}}, e.err
}
func (e *echo) SilencePort(_ context.Context, q PortMoveOf) (*PortMove, error) {
	e.got = q
	return &PortMove{Move: "m", Last: true, Steps: []MoveStep{}}, e.err
}
func (e *echo) CancelMove(_ context.Context, q PortMoveOf) error       { e.got = q; return e.err }
func (e *echo) ReleaseMovedPort(_ context.Context, q PortMoveOf) error { e.got = q; return e.err }

func (e *echo) Disconnect(_ context.Context, q Disconnect) error { e.got = q; return e.err }
func (e *echo) Block(_ context.Context, q Block) (*Applied, error) {
	e.got = q
	return &Applied{ActiveAfterSeconds: 1.5, ActiveAt: &Instant{1, 2}}, e.err
}
func (e *echo) Move(_ context.Context, q Move) (*Applied, error) {
	e.got = q
	return &Applied{}, e.err
}
func (e *echo) Maintain(_ context.Context, q Maintain) (*Maintained, error) {
	e.got = q
	return &Maintained{Switch: "s", Uplinks: []string{q.Uplink}, Use: q.Use, Applied: &Applied{}}, e.err
}
func (e *echo) Membership(context.Context) (*Membership, error) {
	return &Membership{Member: true}, e.err
}
func (e *echo) Leave(context.Context) (*Membership, error) { return &Membership{Member: true}, e.err }
func (e *echo) HandOver(_ context.Context, q HandOver) (*Applied, error) {
	e.got = q
	return &Applied{}, e.err
}
func (e *echo) Join(_ context.Context, q Join) (*Membership, error) {
	e.got = q
	return &Membership{Member: true, Name: q.Name}, e.err
}
func (e *echo) NetworkHealth(context.Context) (*HostHealth, error) {
	return &HostHealth{Alone: true, Findings: []NetworkFinding{}}, e.err
}
func (e *echo) RunBenchmark(_ context.Context, q HostBenchmark) error {
	e.got = q
	return e.err
}
func (e *echo) EndBenchmark(_ context.Context, q EndBenchmark) (*BenchmarkCounts, error) {
	e.got = q
	return &BenchmarkCounts{Sent: []BenchmarkSent{{Number: 1, Frames: 7}}, Received: []BenchmarkReceived{}}, e.err
}
func (e *echo) Progress(context.Context) (*Progress, error) {
	return &Progress{Attaching: 3, Of: 5}, e.err
}
func (e *echo) Trial(context.Context) (*Trial, error) {
	return &Trial{State: TrialAsking, Deadline: someDay}, e.err
}
func (e *echo) ConfirmChange(context.Context) (*Trial, error) {
	return &Trial{State: TrialKept}, e.err
}
func (e *echo) HostPorts(context.Context) ([]HostPort, error) {
	return []HostPort{{Name: "vmk0", Adoption: &Adoption{State: AdoptionConfirm, Deadline: someDay}}}, e.err
}
func (e *echo) Adoption(_ context.Context, q HostPortName) (*Adoption, error) {
	e.got = q
	return &Adoption{Name: q.Name}, e.err
}
func (e *echo) Adopt(_ context.Context, q Adopt) (*Adoption, error) {
	e.got = q
	return &Adoption{Name: q.Name}, e.err
}
func (e *echo) ConfirmAdoption(_ context.Context, q HostPortName) (*Adoption, error) {
	q.Name += " confirmed"
	e.got = q
	return &Adoption{}, e.err
}
func (e *echo) ReleaseAdoption(_ context.Context, q Release) (*Adoption, error) {
	q.Name += " released"
	e.got = q
	return &Adoption{}, e.err
}
func (e *echo) Config(_ context.Context, q ConfigQuery) (*AppliedConfig, error) {
	e.got = q
	return &AppliedConfig{Number: q.Number, By: "apply f", At: time.Unix(1000, 0).UTC(), Content: "# ü\n"}, e.err
}
func (e *echo) Configs(context.Context) ([]AppliedConfig, error) {
	return []AppliedConfig{{Number: 1}, {Number: 2, Applied: true, Size: 7}}, e.err
}
func (e *echo) Stop(context.Context) error { return e.err }
func (e *echo) Events(ctx context.Context, q Follow, emit func(Events) error) error {
	e.got = q
	err := emit(Events{Missed: 2, Events: []event.Event{{Seq: q.After + 3, Kind: event.Link, Text: "up"}}})
	if err == nil && !q.NoFollow {
		<-ctx.Done()
	}
	return err
}

// serve runs a server for the test and returns a client of it and the socket.
func serve(t *testing.T, s Service) (*Client, string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "a.sock")
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, s, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return NewClient(socket), socket
}

func TestEveryCallArrivesAndComesBack(t *testing.T) {
	ctx, e := context.Background(), &echo{}
	c, socket := serve(t, e)
	if fi, err := os.Stat(socket); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("socket %v, %v: others may use it", fi.Mode(), err)
	}
	want, _ := e.State(ctx)
	if got, err := c.State(ctx); err != nil || !cmp.Equal(want, got) {
		t.Errorf("state: %v %s", err, cmp.Diff(want, got))
	}
	if got, err := c.Stats(ctx); err != nil || got[0].Counters[0].Value != 1<<60 {
		t.Errorf("stats: %v %v", got, err)
	}
	if got, err := c.MACs(ctx); err != nil || got[0].IdleSeconds != 1.5 {
		t.Errorf("macs: %v %v", got, err)
	}
	if got, err := c.HostPorts(ctx); err != nil || !got[0].Adoption.Deadline.Equal(someDay) {
		t.Errorf("host ports: %v %v", got, err)
	}
	adopt := Adopt{Device: "eth0", Gateways: []string{"192.0.2.1"}, ConfirmWithin: time.Minute, Force: true}
	yes := true
	port := Connect{Window: Window{ConfirmWithin: time.Minute},
		Port: spec.Port{Name: "vm1/eth0", Switch: "lab", PortGroup: "web",
			Policy: spec.Policy{Blocked: &yes, VLAN: &spec.VLAN{Trunk: []string{"1-5"}}}}}
	named := func(name string) Connect { return Connect{Port: spec.Port{Name: name}} }
	coming := func(name string) Incoming {
		return Incoming{Connect: named(name), Needs: []string{"storage"}, NeedsUplink: true, MACs: 3,
			Flows: 4, Force: true}
	}
	for _, q := range []struct {
		call func() error
		want any
	}{
		{func() error {
			_, err := c.Apply(ctx, Apply{File: "f", Content: "switches: []\n# ü", DryRun: true, ReadAt: 7,
				Window: Window{ConfirmWithin: time.Minute}})
			return err
		}, Apply{File: "f", Content: "switches: []\n# ü", DryRun: true, ReadAt: 7,
			Window: Window{ConfirmWithin: time.Minute}}},
		{func() error { _, err := c.Connect(ctx, port); return err }, port},
		{func() error { _, err := c.Reconnect(ctx, named("p")); return err }, named("p again")},
		{func() error { _, err := c.ConnectIncoming(ctx, coming("p")); return err }, coming("p to come")},
		{func() error {
			return c.Expect(ctx, Expect{Guest: "vm1", Needs: []string{"nfs"}, Force: true})
		}, Expect{Guest: "vm1", Needs: []string{"nfs"}, Force: true}},
		{func() error { return c.Activate(ctx, Activate{Port: "p"}) }, Activate{Port: "p"}},
		{func() error { _, err := c.PortMoves(ctx, PortMoveOf{Port: "p"}); return err }, PortMoveOf{Port: "p"}},
		{func() error { _, err := c.CopyMovingPort(ctx, PortMoveOf{Port: "q"}); return err }, PortMoveOf{Port: "q"}},
		{func() error { _, err := c.SilencePort(ctx, PortMoveOf{Port: "r"}); return err }, PortMoveOf{Port: "r"}},
		{func() error { return c.CancelMove(ctx, PortMoveOf{Port: "s"}) }, PortMoveOf{Port: "s"}},
		{func() error { return c.ReleaseMovedPort(ctx, PortMoveOf{Port: "t"}) }, PortMoveOf{Port: "t"}},
		{func() error { return c.Disconnect(ctx, Disconnect{Port: "p"}) }, Disconnect{Port: "p"}},
		{func() error { return c.Disconnect(ctx, Disconnect{Device: "tap0"}) }, Disconnect{Device: "tap0"}},
		{func() error { _, err := c.Block(ctx, Block{Port: "p", Blocked: true, ReadAt: 7}); return err },
			Block{Port: "p", Blocked: true, ReadAt: 7}},
		{func() error { _, err := c.Move(ctx, Move{Port: "p", PortGroup: "g", ReadAt: 7}); return err },
			Move{Port: "p", PortGroup: "g", ReadAt: 7}},
		{func() error {
			_, err := c.Maintain(ctx, Maintain{Uplink: "u", Use: IsDrained, Force: true})
			return err
		},
			Maintain{Uplink: "u", Use: IsDrained, Force: true}},
		{func() error { _, err := c.Join(ctx, Join{Controller: "c:1", Token: "t", Name: "n"}); return err },
			Join{Controller: "c:1", Token: "t", Name: "n"}},
		{func() error { _, err := c.HandOver(ctx, HandOver{DryRun: true}); return err }, HandOver{DryRun: true}},
		{func() error { _, err := c.Adopt(ctx, adopt); return err }, adopt},
		{func() error { _, err := c.Adoption(ctx, HostPortName{"p"}); return err }, HostPortName{"p"}},
		{func() error { _, err := c.ConfirmAdoption(ctx, HostPortName{"p"}); return err }, HostPortName{"p confirmed"}},
		{func() error { _, err := c.ReleaseAdoption(ctx, Release{"p", true}); return err },
			Release{"p released", true}},
	} {
		if err := q.call(); err != nil || !cmp.Equal(q.want, e.got) {
			t.Errorf("%T: %v %s", q.want, err, cmp.Diff(q.want, e.got))
		}
	}
	if got, err := c.Progress(ctx); err != nil || *got != (Progress{Attaching: 3, Of: 5}) {
		t.Errorf("progress: %v %v", got, err)
	}
	if got, err := c.Config(ctx, ConfigQuery{Number: 3, Running: true}); err != nil || got.Number != 3 ||
		got.Content != "# ü\n" ||
		!got.At.Equal(time.Unix(1000, 0)) || e.got != (ConfigQuery{Number: 3, Running: true}) {
		t.Errorf("config: %v %+v %+v", err, got, e.got)
	}
	if got, err := c.Configs(ctx); err != nil || len(got) != 2 || !got[1].Applied || got[1].Size != 7 {
		t.Errorf("configs: %v %+v", err, got)
	}
	if err := c.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestErrorsKeepTheirKindAndLines(t *testing.T) {
	c, _ := serve(t, &echo{err: NewError(Invalid, "f:1:2: one", "f:3:4: two")})
	var e *Error
	if _, err := c.State(context.Background()); !errors.As(err, &e) || e.Kind != Invalid || len(e.Lines) != 2 {
		t.Errorf("%v", err)
	}
	c, _ = serve(t, &echo{err: errors.New("disk full")})
	if _, err := c.Move(context.Background(), Move{}); !errors.As(err, &e) || e.Kind != Internal ||
		e.Error() != "disk full" {
		t.Errorf("%v", err)
	}
}

func TestNoAgentSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	_, err := NewClient(filepath.Join(dir, "none.sock")).State(context.Background())
	if !errors.Is(err, ErrNoAgent) || !strings.Contains(err.Error(), "heddle agent") {
		t.Errorf("no socket: %v", err)
	}
	dead := filepath.Join(dir, "dead.sock")
	l, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if _, err := NewClient(dead).State(context.Background()); !errors.Is(err, ErrNoAgent) {
		t.Errorf("a dead agent's socket: %v", err)
	}
	again, err := Listen(dead)
	if err != nil {
		t.Fatalf("the next agent cannot listen: %v", err)
	}
	again.Close()
}

// plain returns an HTTP client without knowledge of the contract.
func plain(socket string) *http.Client { return &http.Client{Transport: dialer(socket)} }

func TestMalformedRequestsAreRefused(t *testing.T) {
	_, socket := serve(t, &echo{})
	for _, q := range []struct{ kind, body string }{
		{"json", "{"}, {"json", `{"port": 7}`}, {"json", `{"colour": "blue"}`}, {"json", strings.Repeat("[", 100000)},
		{"proto", "\xff"}, {"proto", "\x0a\x05a"}, {"proto", "\x08\x07"}, {"proto", "\x9a\x06\x01x"},
	} {
		t.Run(q.kind, func(t *testing.T) {
			resp, err := plain(socket).Post("http://agent/heddle.agent.v1.PortService/BlockPort", "application/"+q.kind,
				strings.NewReader(q.body))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%s %.20q: %s", q.kind, q.body, resp.Status)
			}
		})
	}
}

func TestSlowAnswerEndsWithTheCallersPatience(t *testing.T) {
	slow := &slowEcho{release: make(chan struct{})}
	c, _ := serve(t, slow)
	defer close(slow.release)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := c.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

type slowEcho struct {
	echo
	release chan struct{}
}

func (s *slowEcho) Stop(ctx context.Context) error {
	select {
	case <-s.release:
	case <-ctx.Done():
	}
	return ctx.Err()
}

func TestEvents_ArriveOneBatchAfterTheOtherAndEndWithTheServer(t *testing.T) {
	e := &echo{}
	c, _ := serve(t, e)
	var got []Events
	keep := func(b Events) error { got = append(got, b); return nil }
	if err := c.Events(t.Context(), Follow{After: 4, Last: -1, NoFollow: true}, keep); err != nil {
		t.Fatal(err)
	}
	if e.got != (Follow{After: 4, Last: -1, NoFollow: true}) || len(got) != 1 || got[0].Missed != 2 ||
		got[0].Events[0].Seq != 7 {
		t.Errorf("asked %+v, got %+v", e.got, got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.Events(ctx, Follow{}, func(Events) error { cancel(); return nil }); err != nil {
		t.Errorf("a follower that stops: %v", err)
	}
	enough := errors.New("enough")
	if err := c.Events(t.Context(), Follow{}, func(Events) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("a follower that fails: %v", err)
	}
	// The server that serve made ends with the test while this call still follows: Shutdown would report it.
	followed := make(chan struct{})
	go func() {
		_ = c.Events(context.Background(), Follow{}, func(Events) error { close(followed); return nil })
	}()
	<-followed
}

func (e *echo) EndCapture(_ context.Context, q EndCapture) error {
	e.got = q
	return e.err
}

func (e *echo) Capture(ctx context.Context, q Capture, emit func(CaptureEvent) error) error {
	e.got = q
	if e.err != nil {
		return e.err
	}
	for _, v := range []CaptureEvent{
		{Started: &CaptureStarted{ID: 7}},
		{Port: &CapturePort{Number: 3, Switch: "s", Name: "vm1", Uplink: true}},
		{Frame: &CaptureFrame{Time: time.Unix(1, 1), Stage: StageDrop, Reason: "mac-limit",
			Segment: plan.SegmentOf(7, true), Port: 3, Length: 9000, Data: []byte{1, 2, 3, 4}}},
		{Counts: &CaptureCounts{Selected: 5, Lost: 4}},
	} {
		if err := emit(v); err != nil {
			return err
		}
	}
	if q.Snap == 1 { // until the client disconnects
		<-ctx.Done()
		return ctx.Err()
	}
	if q.Snap == 2 { // without an end
		return nil
	}
	return emit(CaptureEvent{Counts: &CaptureCounts{Selected: 5, Lost: 4, Ended: CaptureAsked}})
}

func TestCaptureCrossesTheSocket(t *testing.T) {
	e := &echo{}
	c, _ := serve(t, e)
	var got []string
	note := func(v CaptureEvent) error {
		switch {
		case v.Started != nil:
			got = append(got, fmt.Sprintf("started %d", v.Started.ID))
		case v.Port != nil:
			got = append(got, fmt.Sprintf("port %+v", *v.Port))
		case v.Frame != nil:
			got = append(got, fmt.Sprintf("frame %d %s %s in %s %x of %d at %d", v.Frame.Port, v.Frame.Stage,
				v.Frame.Reason, v.Frame.Segment, v.Frame.Data, v.Frame.Length, v.Frame.Time.UnixNano()))
		case v.Counts != nil:
			got = append(got, fmt.Sprintf("counts %+v", *v.Counts))
		}
		return nil
	}
	if err := c.Capture(t.Context(), Capture{Ports: []string{"vm1"}}, note); err != nil {
		t.Fatal(err)
	}
	want := []string{"started 7", "port {Number:3 Switch:s Name:vm1 Uplink:true Device:}",
		"frame 3 drop mac-limit in ad:7 01020304 of 9000 at 1000000001",
		"counts {Selected:5 Lost:4 Ended:}", "counts {Selected:5 Lost:4 Ended:asked}"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if err := c.Capture(t.Context(), Capture{Snap: 2}, note); !errors.Is(err, ErrEnded) {
		t.Errorf("a capture without an end: %v", err)
	}
	enough := errors.New("enough")
	if err := c.Capture(t.Context(), Capture{Snap: 1}, func(CaptureEvent) error { return enough }); !errors.Is(err,
		enough) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := c.Capture(ctx, Capture{Snap: 1}, func(v CaptureEvent) error {
		if v.Counts != nil {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a client that leaves: %v", err)
	}
	e.err = NewError(Invalid, "no such port")
	var refused *Error
	if err := c.Capture(t.Context(), Capture{}, note); !errors.As(err, &refused) || refused.Kind != Invalid {
		t.Errorf("%v", err)
	}
}
