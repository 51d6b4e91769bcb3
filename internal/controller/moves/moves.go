package moves

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/controller/part"
	"heddle/internal/platform/access"
)

// Times of moves.
const (
	// reportTime is how long steps are reported unless the caller says, mostReport the most.
	reportTime, mostReport = time.Minute, time.Hour
	// lookEvery is how often the hosts are asked how far they are.
	lookEvery = 250 * time.Millisecond
	// releaseTime is how long to report after the guest runs at the target.
	releaseTime = 10 * time.Second
)

// MovePort prepares a port on another host, and reports every step.
func (s Service) MovePort(ctx context.Context, q *controllerv1.MovePortRequest,
	out controllerv1connect.MoveServiceMovePortServerStream) error {
	m, err := s.Prepare(ctx, q)
	if err != nil {
		return err
	}
	wait := q.GetWait().AsDuration()
	if q.GetWait() == nil {
		wait = reportTime
	}
	ctx, cancel := context.WithTimeout(ctx, max(0, min(wait, mostReport)))
	defer cancel()
	return s.Follow(ctx, m, out.Send)
}

// Prepare has the target prepare the port.
func (s Service) Prepare(ctx context.Context, q *controllerv1.MovePortRequest) (*Move, error) {
	m, err := s.Planned(ctx, q)
	if err != nil {
		return nil, err
	}
	if !q.GetForce() {
		m.macs, m.flows = s.Room(ctx, m.from, m.sw, m.name)
	}
	return m, s.Agent(ctx, m.to, func(ctx context.Context, rpc *connect.Client) error {
		_, err := agentv1connect.NewPortServiceClient(rpc).ConnectIncomingPort(ctx, m.Request(q))
		return err
	})
}

// Follow reports the steps of a move until it is over, or ctx ends.
func (s Service) Follow(ctx context.Context, m *Move, send func(*controllerv1.MovePortResponse) error) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	told := map[controllerv1.MoveStep]bool{}
	var until <-chan time.Time
	for {
		for _, step := range s.steps(ctx, m) {
			if told[step.GetStep()] {
				continue
			}
			told[step.GetStep()] = true
			if err := send(step); err != nil {
				return err
			}
			if step.GetStep() == controllerv1.MoveStep_MOVE_STEP_ACTIVE {
				over := time.NewTimer(releaseTime)
				defer over.Stop()
				until = over.C
			}
		}
		if told[controllerv1.MoveStep_MOVE_STEP_RELEASED] || told[controllerv1.MoveStep_MOVE_STEP_CANCELLED] {
			return nil
		}
		select {
		case <-tick.C:
		case <-until:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// steps are those that the two hosts tell of a move, in their order. A host that does not answer tells none.
func (s Service) steps(ctx context.Context, m *Move) (list []*controllerv1.MovePortResponse) {
	var sides [2]*agentv1.PortMove
	var both sync.WaitGroup
	for i, host := range []string{m.to, m.from} {
		both.Go(func() {
			all, err := s.movesOf(ctx, host, m.name)
			if err != nil {
				s.Log.Debug("a host does not say how far a move is", "host", host, "err", err)
			}
			side := []agentv1.MoveSide{agentv1.MoveSide_MOVE_SIDE_TARGET, agentv1.MoveSide_MOVE_SIDE_SOURCE}[i]
			sides[i] = newest(all, m.adapter, side)
		})
	}
	both.Wait()
	target, source := sides[0], sides[1]
	if m.id == "" {
		m.id = target.GetMove()
	}
	if source.GetMove() != m.id { // of an earlier move
		source = nil
	}
	if target.GetMove() != m.id {
		target = nil
	}
	if target == nil && source == nil {
		return nil
	}
	for _, s := range slices.Concat(target.GetSteps(), source.GetSteps()) {
		list = append(list, &controllerv1.MovePortResponse{Step: controllerv1.MoveStep(s.GetPhase()), At: s.GetAt(),
			Text: s.GetText(), Move: m.id})
	}
	slices.SortStableFunc(list, func(a, b *controllerv1.MovePortResponse) int { return cmp.Compare(a.Step, b.Step) })
	return list
}

// movesOf are the moves of a port, "" for all, that a host knows.
func (s Service) movesOf(ctx context.Context, host, port string) (list []*agentv1.PortMove, err error) {
	err = s.Agent(ctx, host, func(ctx context.Context, rpc *connect.Client) error {
		r, err := agentv1connect.NewMoveServiceClient(rpc).ListMoves(ctx, &agentv1.ListMovesRequest{Port: port})
		list = r.GetMoves()
		return err
	})
	return list, err
}

// newest is the move of an adapter that began last; nil for none.
func newest(all []*agentv1.PortMove, of part.Adapter, side agentv1.MoveSide) (found *agentv1.PortMove) {
	for _, m := range all {
		if m.GetVm() != of.VM || m.GetAdapter() != of.Name || m.GetSide() != side {
			continue
		}
		if found == nil || !began(m).Before(began(found)) {
			found = m
		}
	}
	return found
}

func began(m *agentv1.PortMove) time.Time {
	if len(m.GetSteps()) == 0 {
		return time.Time{}
	}
	return m.GetSteps()[0].GetAt().AsTime()
}

// open reports whether a move is under way: its guest does not run at the target yet.
func open(m *agentv1.PortMove) bool {
	return m.GetSide() == agentv1.MoveSide_MOVE_SIDE_TARGET && m.GetPhase() < agentv1.MovePhase_MOVE_PHASE_ACTIVE
}

// ActivateMove records that the guest runs at the target.
func (s Service) ActivateMove(ctx context.Context, q *controllerv1.ActivateMoveRequest) (
	*controllerv1.ActivateMoveResponse, error) {
	m, err := s.waitingAt(ctx, q.GetPort(), q.GetHost())
	if err != nil {
		return nil, err
	}
	err = s.Agent(ctx, m.to, func(ctx context.Context, rpc *connect.Client) error {
		_, err := agentv1connect.NewPortServiceClient(rpc).ActivatePort(ctx, &agentv1.ActivatePortRequest{Port: m.name,
			Of: m.port.identity()})
		return err
	})
	if err != nil {
		return nil, err
	}
	return &controllerv1.ActivateMoveResponse{Port: m.located()}, nil
}

// ListMoves lists the moves that are under way: the hosts are asked that have ports which wait.
func (s Service) ListMoves(ctx context.Context, _ *controllerv1.ListMovesRequest) (*controllerv1.ListMovesResponse,
	error) {
	there := s.Look(ctx, true)
	out := &controllerv1.ListMovesResponse{Unreachable: there.Away, Stale: there.Stale}
	hosts, sight, seen := map[string]bool{}, access.GrantedTo(ctx), map[part.Adapter]bool{}
	for _, p := range there.Ports {
		seen[p.adapter()] = seen[p.adapter()] || sight.Sees(p.GetSwitch(), p.GetPortGroup())
		if p.GetWaits() && p.GetVm() != "" && p.Connected {
			hosts[p.Host] = true
		}
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := make(chan struct{}, 32)
	for host := range hosts {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			list, err := s.movesOf(ctx, host, "")
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.Log.Debug("a host does not say which ports move", "host", host, "err", err)
				return
			}
			for _, m := range list {
				if open(m) && seen[part.AdapterOf(m.GetVm(), m.GetAdapter())] {
					out.Moves = append(out.Moves, &controllerv1.FleetMove{Move: m.GetMove(), Vm: m.GetVm(),
						Adapter: m.GetAdapter(), From: m.GetPeer(), To: host, Since: timestamppb.New(began(m)),
						Step: controllerv1.MoveStep(m.GetPhase())})
				}
			}
		})
	}
	all.Wait()
	slices.SortFunc(out.GetMoves(), func(a, b *controllerv1.FleetMove) int {
		return cmp.Or(cmp.Compare(a.GetVm(), b.GetVm()), cmp.Compare(a.GetAdapter(), b.GetAdapter()))
	})
	return out, ctx.Err()
}

// located is the port as an answer names it.
func (m *Move) located() *controllerv1.LocatedPort {
	return &controllerv1.LocatedPort{Vm: m.adapter.VM, Adapter: m.adapter.Name, Instances: []*controllerv1.PortInstance{
		{Host: m.to, Switch: m.sw, Name: m.name, PortGroup: m.group}}}
}

// refusedMove is the error of a move that can't be, or should not be.
func refusedMove(format string, args ...any) error {
	return connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf(format, args...))
}
