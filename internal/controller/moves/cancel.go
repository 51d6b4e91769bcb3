package moves

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"connectrpc.com/connect/v2"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	controllerv1 "heddle/api/heddle/controller/v1"
)

// CancelMove takes back a move: the port that waits is removed at the target, and at each host that was the target
// before the VM was sent to another one. Of hosts that are away it says that they are: nobody knows what waits there.
func (s Service) CancelMove(ctx context.Context, q *controllerv1.CancelMoveRequest) (*controllerv1.CancelMoveResponse,
	error) {
	list, err := s.waitingAll(ctx, q.GetPort(), q.GetHost())
	if err != nil {
		return nil, err
	}
	out := &controllerv1.CancelMoveResponse{Port: list[0].located()}
	out.Port.Instances = nil
	var errs, away []error
	for _, m := range list {
		err := error(nil)
		if m.port.Connected {
			err = s.cancelAt(ctx, m.to, m.name, m.port.identity())
		}
		switch {
		case !m.port.Connected || err != nil && connect.CodeOf(err) == connect.CodeUnavailable:
			out.Away = append(out.Away, m.to)
			away = append(away, m.staysAt())
		case err != nil:
			errs = append(errs, err)
		default:
			out.Port.Instances = append(out.Port.Instances, m.located().GetInstances()...)
		}
	}
	if len(errs) > 0 || len(out.GetPort().GetInstances()) == 0 {
		return nil, errors.Join(append(errs, away...)...)
	}
	return out, nil
}

// staysAt is the error of a host that is away: what is to be done there.
func (m *Move) staysAt() error {
	return connect.NewError(connect.CodeUnavailable, fmt.Sprintf("host %s does not answer: if port %s waits for its "+
		"guest there, it stays; when the host is back, cancel there too (--cancel --to %s)", m.to, m.name, m.to))
}

// cancelAt has a host remove the port that waits for its guest.
func (s Service) cancelAt(ctx context.Context, host, port string, of *agentv1.PortIdentity) error {
	return s.Agent(ctx, host, func(ctx context.Context, rpc *connect.Client) error {
		q := &agentv1.CancelMoveRequest{Port: port, Of: of}
		_, err := agentv1connect.NewMoveServiceClient(rpc).CancelMove(ctx, q)
		return err
	})
}

// waitingAll are the moves of a port to all hosts whose port waits for the guest, or to that one. The caller may
// operate each.
func (s Service) waitingAll(ctx context.Context, port, host string) (list []*Move, err error) {
	if port == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument, "say which port")
	}
	there := s.Look(ctx, false)
	arrived := ""
	for _, p := range there.Ports {
		if !p.named(port) || host != "" && p.Host != host {
			continue
		}
		if p.GetArrived() {
			arrived = p.Host
		}
		if !p.GetWaits() || p.GetVm() == "" && !p.Connected && host == "" {
			continue
		}
		m := &Move{adapter: p.adapter(), to: p.Host, port: p, sw: p.GetSwitch(), name: p.GetName(),
			group: p.GetPortGroup()}
		if waits, err := s.arrives(ctx, m, host != ""); err != nil || !waits {
			if err != nil {
				return nil, err
			}
			continue
		}
		list = append(list, m)
	}
	switch {
	case len(list) == 0:
		return nil, nobodyWaits(port, arrived)
	case slices.ContainsFunc(list, func(m *Move) bool { return m.adapter != list[0].adapter }):
		return nil, refusedMove("several VMs have a port %s that waits for its guest: say which, as VM/ADAPTER", port)
	}
	for _, m := range list {
		if err := operates(ctx, m.sw, m.group); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// arrives reports whether a port that waits does so for a guest that arrives: the one that the guest has left waits,
// too. named: the caller has named the host, which says it itself. One that is away can't say it.
func (s Service) arrives(ctx context.Context, m *Move, named bool) (bool, error) {
	if named || !m.port.Connected {
		return true, nil
	}
	moves, err := s.movesOf(ctx, m.to, m.name)
	if connect.CodeOf(err) == connect.CodeUnavailable && err != nil {
		m.port.Connected = false
		return true, nil
	}
	return slices.ContainsFunc(moves, open), err
}

// nobodyWaits is the error of a move that is not under way; arrived is the host where the guest came a moment ago, ""
// for none.
func nobodyWaits(port, arrived string) error {
	text := fmt.Sprintf("no host waits for the guest of port %s", port)
	if arrived != "" {
		text += fmt.Sprintf(": it runs on host %s already", arrived)
	}
	return connect.NewError(connect.CodeNotFound, text)
}
