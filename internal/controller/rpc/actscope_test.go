package rpc

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/controller/moves"
)

// moves are the calls of one person about moves.
func (f *front) moves(p *person) controllerv1connect.MoveServiceClient {
	return controllerv1connect.NewMoveServiceClient(connect.NewClient(connecthttp.NewTransport(p.http,
		"https://"+f.address)))
}

// A move takes nothing from a port that the caller does not operate, and nothing from another guest, wherever it is:
// each call about moves is tried where the port at the target is another one, and no host is asked for anything.
func TestS113_EachCallAboutMovesIsJudgedAtTheTargetToo(t *testing.T) {
	f := answersPeople(t)
	from, to := movingHostsOf(f.controller)
	web, _ := f.scoped("web", controllerv1.AccessRole_ACCESS_ROLE_OPERATOR, "dvs/web")
	all, _ := f.scoped("all", controllerv1.AccessRole_ACCESS_ROLE_OPERATOR)
	otherVM := "7f9619ff-8b86-d011-b42d-00c04fc96402"
	port := func(change func(*controllerv1.HostPort)) *controllerv1.HostPort {
		p := actsPort(false)
		change(p)
		return p
	}
	move := func(ctx context.Context, c controllerv1connect.MoveServiceClient) error {
		s, err := c.MovePort(ctx, &controllerv1.MovePortRequest{Port: "vm/eth0", Host: "esx1", To: "esx2"})
		if err == nil {
			_, err = s.Receive()
			err = errors.Join(err, s.Close())
		}
		return err
	}
	cancel := func(ctx context.Context, c controllerv1connect.MoveServiceClient) error {
		_, err := c.CancelMove(ctx, &controllerv1.CancelMoveRequest{Port: "vm/eth0", Host: "esx2"})
		return err
	}
	activate := func(ctx context.Context, c controllerv1connect.MoveServiceClient) error {
		_, err := c.ActivateMove(ctx, &controllerv1.ActivateMoveRequest{Port: "vm/eth0", Host: "esx2"})
		return err
	}
	reassign := func(group string) func(context.Context, controllerv1connect.MoveServiceClient) error {
		return func(ctx context.Context, c controllerv1connect.MoveServiceClient) error {
			_, err := c.ReassignPort(ctx, &controllerv1.ReassignPortRequest{Port: "vm/eth0", Host: "esx2",
				PortGroup: group})
			return err
		}
	}
	a := moveCallsAt(f.Server)
	const denied = "permission_denied"
	for _, row := range []struct {
		name   string
		by     *person
		target *controllerv1.HostPort
		call   func(context.Context, controllerv1connect.MoveServiceClient) error
		says   string
	}{
		{"a move onto another guest's device", all, port(func(p *controllerv1.HostPort) {
			p.Vm, p.Name, p.PortGroup = otherVM, "db/eth0", "db"
		}), move, "port db/eth0 has it; say which device its guest gets there (--device)"},
		{"a move onto nobody's port", all, port(func(p *controllerv1.HostPort) {
			p.Vm, p.Adapter, p.Name = "", "", "x"
		}), move, "port x has it"},
		{"a move onto another guest's name", all, port(func(p *controllerv1.HostPort) {
			p.Vm, p.Device = otherVM, "tap7"
		}), move, "has a port vm/eth0 of another guest"},
		{"a move that replaces the VM's own port in another port group", web, port(func(p *controllerv1.HostPort) {
			p.PortGroup, p.Waits = "db", true
		}), move, denied},
		{"a cancel in another port group", web, port(func(p *controllerv1.HostPort) {
			p.PortGroup, p.Waits = "db", true
		}), cancel, denied},
		{"an activation in another port group", web, port(func(p *controllerv1.HostPort) {
			p.PortGroup, p.Waits = "db", true
		}), activate, denied},
		{"a reassignment out of another port group", web, port(func(p *controllerv1.HostPort) { p.PortGroup = "db" }),
			reassign("web"), denied},
		{"a reassignment into another port group", web, port(func(*controllerv1.HostPort) {}), reassign("db"), denied},
	} {
		t.Run(row.name, func(t *testing.T) {
			to.reports(row.target)
			f.await("the target's port is known", func() bool {
				return slices.ContainsFunc(a.Look(t.Context(), false).Ports, func(p moves.Port) bool {
					return p.Host == "esx2" && proto.Equal(p.HostPort, row.target)
				})
			})
			err := row.call(t.Context(), f.moves(row.by))
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%v, want %q", err, row.says)
			}
			to.mu.Lock()
			defer to.mu.Unlock()
			if len(to.asked)+len(to.called)+len(from.called) > 0 {
				t.Errorf("the hosts were asked: %v %v %v", to.asked, to.called, from.called)
			}
		})
	}
}
