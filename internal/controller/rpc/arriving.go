package rpc

import (
	"context"
	"strings"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/spec"
)

// arriving is the half of a server that agents call: beside all else it tells a host to which a guest moves what the
// guest's port has where it runs.
type arriving struct{ spanning }

// DescribeArrival says what a port has where its guest runs. A host is told that of port groups that it serves (S104).
func (s arriving) DescribeArrival(ctx context.Context, q *controllerv1.DescribeArrivalRequest) (
	*controllerv1.DescribeArrivalResponse, error) {
	peer, err := peerOf(ctx)
	if err == nil && peer.RenewOnly {
		err = connect.NewError(connect.CodePermissionDenied,
			"the host's certificate does not count now: it is renewed first, by FollowSlice and RenewHost")
	}
	if err == nil {
		err = s.present(ctx, peer.Name.ID)
	}
	if err != nil {
		return nil, err
	}
	if !spec.ValidUUID(q.GetVm()) || q.GetAdapter() == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument,
			"say whose port arrives: the VM's UUID and the adapter")
	}
	to := (locating{s.fleet}).hostOf(peer.Name.ID)
	if to == nil {
		return nil, rpcerrors.Removed()
	}
	group := q.GetSwitch() + "/" + q.GetPortGroup()
	if _, is, err := servesGroup(s.fleet, to.id, group); !is || err != nil {
		return &controllerv1.DescribeArrivalResponse{}, nil // which the host finds out by itself
	}
	out := &controllerv1.DescribeArrivalResponse{}
	from := s.runsAt(ctx, q, to)
	if from == nil {
		return out, nil
	}
	out.Host = from.GetHost()
	out.Uplink, out.Lacks = s.compared(ctx, from, to, q.GetPortGroup())
	out.Macs, out.Flows = movesAt(s.Server).Room(ctx, from.GetHost(), from.GetSwitch(), from.GetName())
	return out, nil
}

// hostOf is the host with an id; nil for one that is not of the cluster any more.
func (l locating) hostOf(id string) *host {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fleet.hosts[id]
}

// runsAt is the port where an adapter's guest runs, nil where no other host than the one that asks is known.
func (s arriving) runsAt(ctx context.Context, q *controllerv1.DescribeArrivalRequest,
	to *host) *controllerv1.PortInstance {
	all, _ := locatorOf(s.Server).locate(ctx, &controllerv1.LocatePortsRequest{Vm: strings.ToLower(q.GetVm()),
		Adapter: q.GetAdapter()})
	here := (segmenting{s.fleet}).nameOf(to.id)
	for _, p := range all {
		for _, i := range p.GetInstances() {
			if i.GetActive() && !i.GetStale() && i.GetHost() != here && i.GetSwitch() == q.GetSwitch() {
				return i
			}
		}
	}
	return nil
}

// compared reports whether the switch of a port reaches the physical network on its host, and says why the port would
// be less protected in a port group of the other host; "" for nothing.
func (s arriving) compared(ctx context.Context, at *controllerv1.PortInstance, to *host, group string) (uplink bool,
	lacks string) {
	there := s.askHosts(ctx, &controllerv1.GetHostsHereRequest{Names: []string{at.GetHost()}})
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	all := s.everywhere()
	from, err := all.forMoves(s.fleet.names[at.GetHost()], there)
	uplink = err == nil && from != nil && from.Isolated(at.GetSwitch()) == ""
	if own, err := all.forMoves(to, there); err == nil {
		lacks = own.LessProtected(at.GetSwitch(), group)
	}
	return uplink, lacks
}
