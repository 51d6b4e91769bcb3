package moves

import (
	"cmp"
	"context"

	"connectrpc.com/connect/v2"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	controllerv1 "heddle/api/heddle/controller/v1"
)

// ReassignPort puts a port into another port group or switch of the host that it is on. The host decides whether it
// can, and makes the change at one instant.
func (s Service) ReassignPort(ctx context.Context, q *controllerv1.ReassignPortRequest) (
	*controllerv1.ReassignPortResponse, error) {
	switch {
	case q.GetPort() == "":
		return nil, connect.NewError(connect.CodeInvalidArgument, "say which port")
	case q.GetSwitch() == "" && q.GetPortGroup() == "":
		return nil, connect.NewError(connect.CodeInvalidArgument, "say where the port goes: a switch, a port group, "+
			"or both")
	}
	there := s.Look(ctx, false)
	p, err := sourceOf(there.Ports, q.GetPort(), q.GetHost())
	if err != nil {
		return nil, err
	}
	out := &controllerv1.ReassignPortResponse{Port: p.GetName(), Host: p.Host,
		Switch: cmp.Or(q.GetSwitch(), p.GetSwitch()), PortGroup: cmp.Or(q.GetPortGroup(), p.GetPortGroup())}
	if err := operates(ctx, p.GetSwitch(), p.GetPortGroup()); err != nil {
		return nil, err
	}
	if err := operates(ctx, out.GetSwitch(), out.GetPortGroup()); err != nil {
		return nil, err
	}
	err = s.Agent(ctx, p.Host, func(ctx context.Context, rpc *connect.Client) error {
		r, err := agentv1connect.NewPortServiceClient(rpc).MovePort(ctx, &agentv1.MovePortRequest{Port: p.GetName(),
			Switch: out.GetSwitch(), PortGroup: out.GetPortGroup(), Of: p.identity()})
		out.Warnings = r.GetApplied().GetWarnings()
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
