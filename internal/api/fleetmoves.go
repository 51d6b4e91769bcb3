package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
)

// FleetMoveStep is how far a move from host to host has come.
type FleetMoveStep string

// The steps, in their order.
const (
	FleetMovePrepared  FleetMoveStep = "prepared"
	FleetMoveCopied    FleetMoveStep = "copied"
	FleetMoveStopped   FleetMoveStep = "stopped"
	FleetMoveActive    FleetMoveStep = "active"
	FleetMoveReleased  FleetMoveStep = "released"
	FleetMoveCancelled FleetMoveStep = "cancelled"
)

// fleetMoveStep is a step of the contract; one that a newer controller has is named by its number.
func fleetMoveStep(s controllerv1.MoveStep) FleetMoveStep {
	known := []FleetMoveStep{"", FleetMovePrepared, FleetMoveCopied, FleetMoveStopped, FleetMoveActive,
		FleetMoveReleased, FleetMoveCancelled}
	if s >= 0 && int(s) < len(known) {
		return known[s]
	}
	return FleetMoveStep(fmt.Sprintf("unknown-%d", s))
}

// MigratePort moves a port to another host.
type MigratePort struct {
	// Port is its name, or VM/ADAPTER; Host the one that it is on, "" where one host alone has such a port.
	Port string `json:"port"`
	Host string `json:"host"`
	// To is the target's name, Device the one at the target; "" for that at the source.
	To     string `json:"to"`
	Device string `json:"device"`
	// Needs are host ports and port groups that the target must have for the VM.
	Needs []string `json:"needs"`
	// Force prepares a port that the target can't serve as well as the source.
	Force bool `json:"force"`
	// Wait is how long to report steps.
	Wait time.Duration `json:"wait"`
}

// MigrateStep is one step of a move.
type MigrateStep struct {
	Step FleetMoveStep `json:"step"`
	At   time.Time     `json:"at,omitzero"`
	Text string        `json:"text"`
	Move string        `json:"move"`
}

// MoveAt names a port and the target of its move, "" where one host alone waits for its guest.
type MoveAt struct {
	Port string `json:"port"`
	Host string `json:"host"`
}

// EndedMove is a move that was cancelled or activated.
type EndedMove struct {
	MoveAt
	// Away are hosts that do not answer, and had a port that waits: it may be there when they are back.
	Away []string `json:"away,omitempty"`
}

// FleetMove is a move that is under way.
type FleetMove struct {
	Move    string `json:"move"`
	VM      string `json:"vm"`
	Adapter string `json:"adapter"`
	// From is "" while no host is known to run the guest.
	From  string        `json:"from"`
	To    string        `json:"to"`
	Step  FleetMoveStep `json:"step"`
	Since time.Time     `json:"since,omitzero"`
}

// FleetMoves are the moves that are under way.
type FleetMoves struct {
	Moves []FleetMove `json:"moves"`
	// Unreachable are the names of controllers that do not answer.
	Unreachable []string `json:"unreachable"`
	// Stale says why all of it may be old; "" where it is current.
	Stale string `json:"stale,omitempty"`
}

// ReassignPort puts a port into another port group or switch of its host.
type ReassignPort struct {
	// Port is its name, or VM/ADAPTER; Host the one that it is on, "" where one host alone has such a port.
	Port string `json:"port"`
	Host string `json:"host"`
	// Switch is "" for the port's own, PortGroup "" for the one of the same name there.
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup"`
}

// ReassignedPort is a port that is in another port group.
type ReassignedPort struct {
	ReassignPort
	Warnings []string `json:"warnings"`
}

// fleetMoveCalls are the calls about moves.
type fleetMoveCalls struct {
	fleet *Fleet
	moves controllerv1connect.MoveServiceClient
}

// Migrate prepares a port on another host, and calls emit with each step. It ends without an error when the steps are
// reported, or ctx ends.
func (c fleetMoveCalls) Migrate(ctx context.Context, q MigratePort, emit func(MigrateStep) error) error {
	m := &controllerv1.MovePortRequest{}
	if err := c.fleet.codec.Put(q, m); err != nil {
		return NewError(Invalid, err.Error())
	}
	s, err := c.moves.MovePort(ctx, m)
	if err != nil {
		return c.over(ctx, err)
	}
	defer s.Close()
	for {
		r, err := s.Receive()
		if err != nil {
			return c.over(ctx, err)
		}
		step := MigrateStep{Step: fleetMoveStep(r.GetStep()), Text: r.GetText(), Move: r.GetMove()}
		if r.GetAt() != nil {
			step.At = r.GetAt().AsTime()
		}
		if err := emit(step); err != nil {
			return err
		}
	}
}

func (c fleetMoveCalls) over(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return c.fleet.explain(ctx, err)
}

// CancelMigration takes back a move whose guest does not run at the target yet. It returns the hosts that do not
// answer, where a port may still wait.
func (c fleetMoveCalls) CancelMigration(ctx context.Context, q MoveAt) (away []string, err error) {
	r, err := c.moves.CancelMove(ctx, &controllerv1.CancelMoveRequest{Port: q.Port, Host: q.Host})
	if err != nil {
		return nil, c.fleet.explain(ctx, err)
	}
	return r.GetAway(), nil
}

// ActivateMigration records that the guest runs at the target.
func (c fleetMoveCalls) ActivateMigration(ctx context.Context, q MoveAt) error {
	_, err := c.moves.ActivateMove(ctx, &controllerv1.ActivateMoveRequest{Port: q.Port, Host: q.Host})
	if err != nil {
		return c.fleet.explain(ctx, err)
	}
	return nil
}

// Reassign puts a port into another port group or switch of its host.
func (c fleetMoveCalls) Reassign(ctx context.Context, q ReassignPort) (*ReassignedPort, error) {
	out, err := call[ReassignedPort, controllerv1.ReassignPortRequest, controllerv1.ReassignPortResponse](ctx, c.fleet,
		c.moves.ReassignPort, q)
	return &out, err
}

// Migrations lists the moves that are under way.
func (c fleetMoveCalls) Migrations(ctx context.Context) (*FleetMoves, error) {
	out, err := call[FleetMoves, controllerv1.ListMovesRequest, controllerv1.ListMovesResponse](ctx, c.fleet,
		c.moves.ListMoves, nil)
	return &out, err
}
