package rpc

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/fanout"
)

const (
	actsVM = "6f9619ff-8b86-d011-b42d-00c04fc96401"
	moveID = "0123456789abcdef0123456789abcdef"
)

// mover is a host that stands in for an agent with moves.
type mover struct {
	agentv1connect.UnimplementedPortServiceHandler
	agentv1connect.UnimplementedMoveServiceHandler
	agentv1connect.UnimplementedFlowServiceHandler
	agentv1connect.UnimplementedStatsServiceHandler
	*machine
	side agentv1.MoveSide

	asked  []*agentv1.ConnectIncomingPortRequest
	steps  []agentv1.MovePhase
	called []string
	// meant are the ports that those calls meant.
	meant []*agentv1.PortIdentity
	// refusal is the answer to the next preparation; nil for none.
	refusal error
	// learned is how many MACs the port has learned, flows how many of its flows are metered.
	learned uint64
	flows   int32
}

// ListStats has the number of learned MACs.
func (m *mover) ListStats(context.Context, *agentv1.ListStatsRequest) (*agentv1.ListStatsResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &agentv1.ListStatsResponse{Stats: []*agentv1.Stats{{Switch: "dvs", Name: "vm/eth0",
		Extra: []*agentv1.Counter{{Name: "macsLearned", Value: m.learned}}}}}, nil
}

// ListFlows has the number of flows.
func (m *mover) ListFlows(_ context.Context, q *agentv1.ListFlowsRequest) (*agentv1.ListFlowsResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := q.GetFilter(); f.GetSwitch() != "dvs" || f.GetPort() != "vm/eth0" {
		return nil, connect.NewError(connect.CodeInvalidArgument, "another port")
	}
	return &agentv1.ListFlowsResponse{List: &agentv1.FlowList{Total: m.flows}}, nil
}

// ConnectIncomingPort prepares.
func (m *mover) ConnectIncomingPort(_ context.Context, q *agentv1.ConnectIncomingPortRequest) (
	*agentv1.ConnectIncomingPortResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refusal != nil {
		return nil, m.refusal
	}
	m.asked, m.steps = append(m.asked, q), []agentv1.MovePhase{agentv1.MovePhase_MOVE_PHASE_PREPARED}
	return &agentv1.ConnectIncomingPortResponse{}, nil
}

// ActivatePort is noted.
func (m *mover) ActivatePort(_ context.Context, q *agentv1.ActivatePortRequest) (*agentv1.ActivatePortResponse,
	error) {
	m.means(q.GetOf())
	m.step("activate "+q.GetPort(), agentv1.MovePhase_MOVE_PHASE_ACTIVE)
	return &agentv1.ActivatePortResponse{}, nil
}

// MovePort is noted; a port group "full" is refused.
func (m *mover) MovePort(_ context.Context, q *agentv1.MovePortRequest) (*agentv1.MovePortResponse, error) {
	if q.GetPortGroup() == "full" {
		return nil, connect.NewError(connect.CodeInvalidArgument, "no room in full")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.meant = append(m.meant, q.GetOf())
	m.called = append(m.called, "move "+q.GetPort()+" to "+q.GetSwitch()+"/"+q.GetPortGroup())
	return &agentv1.MovePortResponse{Applied: &agentv1.Applied{Warnings: []string{"look"}}}, nil
}

// CancelMove is noted.
func (m *mover) CancelMove(_ context.Context, q *agentv1.CancelMoveRequest) (*agentv1.CancelMoveResponse, error) {
	m.means(q.GetOf())
	m.step("cancel "+q.GetPort(), agentv1.MovePhase_MOVE_PHASE_CANCELLED)
	return &agentv1.CancelMoveResponse{}, nil
}

// ListMoves lists the one move that the host has steps of.
func (m *mover) ListMoves(context.Context, *agentv1.ListMovesRequest) (*agentv1.ListMovesResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.steps) == 0 {
		return &agentv1.ListMovesResponse{}, nil
	}
	p := &agentv1.PortMove{Move: moveID, Port: "vm/eth0", Vm: actsVM, Adapter: "net0", Side: m.side,
		Phase: m.steps[len(m.steps)-1], Peer: "esx1"}
	for i, s := range m.steps {
		p.Steps = append(p.Steps, &agentv1.PortMoveStep{Phase: s, At: timestamppb.New(time.Unix(int64(i), 0))})
	}
	return &agentv1.ListMovesResponse{Moves: []*agentv1.PortMove{p}}, nil
}

// step records a call and what it leads to.
func (m *mover) step(call string, phase agentv1.MovePhase) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if call != "" {
		m.called = append(m.called, call)
	}
	m.steps = append(m.steps, phase)
}

// reports has the host report its ports.
func (m *mover) reports(ports ...*controllerv1.HostPort) {
	m.mu.Lock()
	m.report = &controllerv1.HostReport{Ports: ports}
	m.mu.Unlock()
	m.client.Changed()
}

// movingHosts are a controller and two hosts, the first of which has the port of a VM.
func movingHosts(t *testing.T) (c *controller, from, to *mover) {
	t.Helper()
	c = newController(t)
	from, to = movingHostsOf(c)
	return c, from, to
}

// movingHostsOf are the two hosts of movingHosts, of that controller.
func movingHostsOf(c *controller) (from, to *mover) {
	c.t.Helper()
	c.define(clusterText)
	from, to = c.mover("esx1", agentv1.MoveSide_MOVE_SIDE_SOURCE), c.mover("esx2", agentv1.MoveSide_MOVE_SIDE_TARGET)
	from.reports(actsPort(false))
	c.await("the port is known", func() bool { return len(c.ports()) == 1 })
	return from, to
}

// mover is a host that joins and takes part in moves on that side.
func (c *controller) mover(name string, side agentv1.MoveSide) *mover {
	c.t.Helper()
	m := &mover{machine: c.joins(name), side: side}
	rpc := connect.NewServer()
	agentv1connect.RegisterPortServiceHandler(rpc, m)
	agentv1connect.RegisterMoveServiceHandler(rpc, m)
	agentv1connect.RegisterFlowServiceHandler(rpc, m)
	agentv1connect.RegisterStatsServiceHandler(rpc, m)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, rpc)
	m.calls = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !api.OfMove(r.URL.Path) && api.LookOf(r.URL.Path) == api.LooksNot {
			http.Error(w, "only calls that look pass a controller", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
	m.start()
	c.await(name+" is up", func() bool { return c.state(name) == controllerv1.HostState_HOST_STATE_UP })
	return m
}

func actsPort(waits bool) *controllerv1.HostPort {
	return &controllerv1.HostPort{Switch: "dvs", Name: "vm/eth0", PortGroup: "web", State: "up", Device: "tap0",
		Mac: "02:00:00:00:00:01", Vm: actsVM, Adapter: "net0", Waits: waits}
}

// steps collects what MovePort reports.
type stepList struct {
	mu   sync.Mutex
	list []controllerv1.MoveStep
}

func (s *stepList) send(r *controllerv1.MovePortResponse) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, r.GetStep())
	return nil
}

func (s *stepList) are(want ...controllerv1.MoveStep) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Equal(s.list, want)
}

// A port is prepared at the target as it is at the source, every step is reported once and in order, and the report
// ends with the release.
func TestS100_AControllerMovesAPortAndReportsItsSteps(t *testing.T) {
	c, from, to := movingHosts(t)
	a, ctx := moveCallsAt(c.Server), t.Context()
	ask := &controllerv1.MovePortRequest{Port: actsVM + "/net0", To: "esx2", Device: "tap9", Needs: []string{"storage"}}
	m, err := a.Planned(ctx, ask)
	if err != nil {
		t.Fatal(err)
	}
	q := m.Request(ask)
	if p := q.GetPort(); p.GetName() != "vm/eth0" || p.GetDevice() != "tap9" || p.GetPortGroup() != "web" ||
		p.GetMac() != "02:00:00:00:00:01" || q.GetVm() != actsVM || !q.GetNeedsUplink() || len(q.GetNeeds()) != 1 {
		t.Errorf("the request: %v", q)
	}
	to.steps = []agentv1.MovePhase{agentv1.MovePhase_MOVE_PHASE_PREPARED}
	steps, done := &stepList{}, make(chan error, 1)
	go func() { done <- a.Follow(ctx, m, steps.send) }()
	want := []controllerv1.MoveStep{controllerv1.MoveStep_MOVE_STEP_PREPARED}
	c.await("it is prepared", func() bool { return steps.are(want...) })
	for _, s := range []agentv1.MovePhase{agentv1.MovePhase_MOVE_PHASE_COPIED, agentv1.MovePhase_MOVE_PHASE_STOPPED,
		agentv1.MovePhase_MOVE_PHASE_ACTIVE} {
		to.step("", s)
		want = append(want, controllerv1.MoveStep(s))
		c.await(s.String(), func() bool { return steps.are(want...) })
	}
	from.step("", agentv1.MovePhase_MOVE_PHASE_RELEASED)
	if err := <-done; err != nil || !steps.are(append(want, controllerv1.MoveStep_MOVE_STEP_RELEASED)...) {
		t.Errorf("%v, %v", steps.list, err)
	}
}

// What can't be, or should not be, is refused in words before anything is asked of a host.
func TestS100_AMoveThatCannotBeIsRefused(t *testing.T) {
	c, from, to := movingHosts(t)
	a, ctx := moveCallsAt(c.Server), t.Context()
	for _, row := range []struct{ name, port, host, to, says string }{
		{"no such port", "vm/eth9", "", "esx2", "no host has a port vm/eth9"},
		{"another host", "vm/eth0", "esx2", "esx1", "no host has a port vm/eth0"},
		{"no such host", "vm/eth0", "", "esx9", `the cluster has no host "esx9"`},
		{"to itself", "vm/eth0", "", "esx1", "is on host esx1 already"},
		{"nothing said", "", "", "esx1", "say which port moves"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := a.Planned(ctx, &controllerv1.MovePortRequest{Port: row.port, Host: row.host, To: row.to})
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%v, want %q", err, row.says)
			}
		})
	}
	q := &controllerv1.MovePortRequest{Port: "vm/eth0", To: "esx2", Wait: durationpb.New(0)}
	says := func(what, text string) {
		t.Helper()
		c.await(what, func() bool {
			_, err := a.Planned(ctx, q)
			return err != nil && strings.Contains(err.Error(), text)
		})
	}
	other := actsPort(false)
	other.Vm = "6f9619ff-8b86-d011-b42d-00c04fc96402"
	to.reports(other)
	says("two hosts have ports of the name", "several hosts have a port vm/eth0")
	q.Host = "esx1"
	says("another guest has the name", "esx2 has a port vm/eth0 of another guest")
	to.reports(actsPort(false))
	says("the guest runs on both", "runs on host esx2 too")
	to.reports()
	nobody := actsPort(false)
	nobody.Vm, nobody.Adapter = "", ""
	from.reports(nobody)
	says("nobody's port", "nobody said whose port vm/eth0 is")
	from.reports(actsPort(true))
	says("no guest", "no guest runs by port vm/eth0 on host esx1")
	if len(to.asked)+len(from.asked) != 0 {
		t.Error("a host was asked")
	}
	to.refusal = connect.NewError(connect.CodeInvalidArgument, "no room")
	err := c.askAgent(ctx, "esx2", func(ctx context.Context, rpc *connect.Client) error {
		_, err := agentv1connect.NewPortServiceClient(rpc).ConnectIncomingPort(ctx,
			&agentv1.ConnectIncomingPortRequest{})
		return err
	})
	if connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), "host esx2: no room") {
		t.Errorf("the host's own words: %v", err)
	}
	err = c.askAgent(ctx, "esx2", func(ctx context.Context, rpc *connect.Client) error {
		_, err := agentv1connect.NewPortServiceClient(rpc).BlockPort(ctx, &agentv1.BlockPortRequest{Port: "x"})
		return err
	})
	if connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("a call that is none of a move's: %v", err)
	}
}

// A move that waits is listed, cancelled and activated at the host that waits, also by who does not name it.
func TestS100_AMoveIsListedCancelledAndActivated(t *testing.T) {
	c, _, to := movingHosts(t)
	a, ctx := moveCallsAt(c.Server), t.Context()
	if _, err := a.CancelMove(ctx, &controllerv1.CancelMoveRequest{Port: "vm/eth0"}); connect.CodeOf(err) !=
		connect.CodeNotFound {
		t.Errorf("nothing to cancel: %v", err)
	}
	came := actsPort(false)
	came.Arrived = true
	to.reports(came)
	c.await("a guest that has come is named", func() bool {
		_, err := a.ActivateMove(ctx, &controllerv1.ActivateMoveRequest{Port: "vm/eth0"})
		return err != nil && strings.HasSuffix(err.Error(), "port vm/eth0: it runs on host esx2 already")
	})
	to.reports()
	c.await("its port is gone", func() bool { return len(c.ports()) == 1 })
	to.step("", agentv1.MovePhase_MOVE_PHASE_PREPARED)
	to.reports(actsPort(true))
	c.await("the port waits", func() bool { return len(c.ports()) == 2 })
	list, err := a.ListMoves(ctx, &controllerv1.ListMovesRequest{})
	if err != nil || len(list.GetMoves()) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if m := list.GetMoves()[0]; m.GetMove() != moveID || m.GetFrom() != "esx1" || m.GetTo() != "esx2" ||
		m.GetStep() != controllerv1.MoveStep_MOVE_STEP_PREPARED {
		t.Errorf("%v", m)
	}
	if _, err := a.ActivateMove(ctx, &controllerv1.ActivateMoveRequest{Port: actsVM + "/net0"}); err != nil {
		t.Error(err)
	}
	if _, err := a.CancelMove(ctx, &controllerv1.CancelMoveRequest{Port: "vm/eth0", Host: "esx2"}); err != nil {
		t.Error(err)
	}
	if want := []string{"activate vm/eth0", "cancel vm/eth0"}; !slices.Equal(to.called, want) {
		t.Errorf("asked for %q, want %q", to.called, want)
	}
}

// A port that runs goes into another port group or switch on the host where its guest runs, whatever has its name
// elsewhere; who does not operate both port groups is refused.
func TestS100_AControllerReassignsAPort(t *testing.T) {
	c, from, to := movingHosts(t)
	a, ctx := moveCallsAt(c.Server), t.Context()
	to.reports(actsPort(true)) // it waits there, and is not meant
	c.await("both are known", func() bool { return len(c.ports()) == 2 })
	out, err := a.ReassignPort(ctx, &controllerv1.ReassignPortRequest{Port: actsVM + "/net0", Switch: "dmz"})
	if err != nil || out.GetHost() != "esx1" || out.GetSwitch() != "dmz" || out.GetPortGroup() != "web" ||
		!slices.Equal(out.GetWarnings(), []string{"look"}) {
		t.Errorf("%v, %v", out, err)
	}
	if _, err := a.ReassignPort(ctx, &controllerv1.ReassignPortRequest{Port: "vm/eth0", PortGroup: "db"}); err != nil {
		t.Error(err)
	}
	if want := []string{"move vm/eth0 to dmz/web", "move vm/eth0 to dvs/db"}; !slices.Equal(from.called, want) ||
		len(to.called) > 0 {
		t.Errorf("asked for %q and %q, want %q and nothing", from.called, to.called, want)
	}
	for _, row := range []struct {
		name, says string
		q          *controllerv1.ReassignPortRequest
	}{
		{"no port", "say which port", &controllerv1.ReassignPortRequest{Switch: "dmz"}},
		{"nowhere", "say where the port goes", &controllerv1.ReassignPortRequest{Port: "vm/eth0"}},
		{"nobody has it", "no host has a port", &controllerv1.ReassignPortRequest{Port: "x", Switch: "dmz"}},
		{"a host where it waits", "no guest runs by port", &controllerv1.ReassignPortRequest{Port: "vm/eth0",
			Host: "esx2", Switch: "dmz"}},
		{"the host refuses", "host esx1: no room in full", &controllerv1.ReassignPortRequest{Port: "vm/eth0",
			PortGroup: "full"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if _, err := a.ReassignPort(ctx, row.q); err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%v, want %q", err, row.says)
			}
		})
	}
}

// What a port takes up where its guest runs goes to the target, which has to have room for it: when a controller
// prepares the move, and when the target's own hook does and the target asks. Who has no such port is told nothing.
func TestS100_ATargetHearsWhatAPortTakesUp(t *testing.T) {
	c, from, to := movingHosts(t)
	from.learned, from.flows = 7, 90
	a, ctx := moveCallsAt(c.Server), t.Context()
	_, err := a.Prepare(ctx, &controllerv1.MovePortRequest{Port: "vm/eth0", To: "esx2"})
	if err != nil || len(to.asked) != 1 || to.asked[0].GetMacs() != 7 || to.asked[0].GetFlows() != 90 {
		t.Errorf("prepared with %v, %v", to.asked, err)
	}
	describe := func(of *mover, vm, group string) *controllerv1.DescribeArrivalResponse {
		t.Helper()
		r, err := of.client.Describe(ctx, &controllerv1.DescribeArrivalRequest{Vm: vm, Adapter: "net0", Switch: "dvs",
			PortGroup: group})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := describe(to, strings.ToUpper(actsVM), "web"); r.GetHost() != "esx1" || r.GetMacs() != 7 ||
		r.GetFlows() != 90 || !r.GetUplink() || r.GetLacks() != "" {
		t.Errorf("the target hears %v", r)
	}
	for _, row := range []struct {
		name, vm, group string
		of              *mover
	}{
		{"nobody has that VM", "6f9619ff-8b86-d011-b42d-00c04fc96499", "web", to},
		{"the host where it runs asks", actsVM, "web", from},
		{"a port group that the host does not serve", actsVM, "none", to},
	} {
		t.Run(row.name, func(t *testing.T) {
			if r := describe(row.of, row.vm, row.group); r.GetHost() != "" || r.GetMacs() != 0 {
				t.Errorf("it hears %v", r)
			}
		})
	}
	for _, q := range []*controllerv1.DescribeArrivalRequest{{}, {Vm: "x", Adapter: "net0"}, {Vm: actsVM}} {
		if _, err := to.client.Describe(ctx, q); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%v: %v", q, err)
		}
	}
}

// A target whose agent does not know a field that protects the port is refused in words, unless somebody insists: when
// a controller prepares the move, and when the target's own hook does and the target asks.
func TestS100_ATargetOfAVersionThatCannotIsRefused(t *testing.T) {
	c, _, to := movingHosts(t)
	set, _ := definition.Stored(c.Store)
	c.writes(tomorrow(t, set, `"security":{"tomorrow":true}`))
	c.await("the field is missed", func() bool {
		return c.state("esx2") == controllerv1.HostState_HOST_STATE_WARNING
	})
	const says = "the agent of host esx2 does not know portGroup dvs/web: security.tomorrow, so that the port would " +
		"be less protected there: update the host"
	a, ctx := moveCallsAt(c.Server), t.Context()
	q := &controllerv1.MovePortRequest{Port: "vm/eth0", To: "esx2"}
	if _, err := a.Planned(ctx, q); connect.CodeOf(err) != connect.CodeFailedPrecondition ||
		!strings.Contains(err.Error(), says+", or use --force") {
		t.Errorf("%v", err)
	}
	q.Force = true
	if _, err := a.Planned(ctx, q); err != nil {
		t.Errorf("by force: %v", err)
	}
	r, err := to.client.Describe(ctx, &controllerv1.DescribeArrivalRequest{Vm: actsVM, Adapter: "net0", Switch: "dvs",
		PortGroup: "web"})
	if err != nil || r.GetLacks() != says {
		t.Errorf("the target hears %v, %v", r, err)
	}
	there := c.seenByMoves(&fanout.Answers{}, "")
	if why := must(there.Host("esx2"))(t).LessProtected("dvs", "db"); why != "" {
		t.Errorf("a port of another port group: %s", why)
	}
}
