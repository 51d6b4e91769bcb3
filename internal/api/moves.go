package api

import (
	"context"
	"time"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
)

// MoveService is about ports that move from host to host with their guests (S100).
type MoveService interface {
	// PortMoves lists the moves that the host takes part in, and the last ones that are over.
	PortMoves(context.Context, PortMoveOf) ([]PortMove, error)
	// CopyMovingPort has a copy made now at the source, and returns when the target has it.
	CopyMovingPort(context.Context, PortMoveOf) (*PortMove, error)
	// SilencePort makes a port silent whose guest has stopped to go on elsewhere. Its answer has no id where no move is
	// under way.
	SilencePort(context.Context, PortMoveOf) (*PortMove, error)
	// CancelMove removes a port that waits for its guest.
	CancelMove(context.Context, PortMoveOf) error
	// ReleaseMovedPort removes a port whose guest has left.
	ReleaseMovedPort(context.Context, PortMoveOf) error
}

// PortMoveOf names a port; "" for all where that makes sense.
type PortMoveOf struct {
	Port string `json:"port"`
	// Of is whose port it must be; nil for whoever has it.
	Of *PortIdentity `json:"of,omitempty"`
}

// MoveSide is the part of a host in a move.
type MoveSide string

// The sides.
const (
	MoveSource MoveSide = "source"
	MoveTarget MoveSide = "target"
)

// MovePhase is how far a move has come, as a host sees it.
type MovePhase string

// PortMove is one move of a port.
type PortMove struct {
	Move    string    `json:"move"`
	Switch  string    `json:"switch"`
	Port    string    `json:"port"`
	VM      string    `json:"vm"`
	Adapter string    `json:"adapter"`
	Side    MoveSide  `json:"side"`
	Phase   MovePhase `json:"phase"`
	// Peer is the name of the other host; "" while it is not known.
	Peer string `json:"peer"`
	// Generation of the port here.
	Generation uint64 `json:"generation"`
	// Copies is the number of the newest copy that the target has; 0 for none. Last: it is the last one.
	Copies uint64 `json:"copies"`
	Last   bool   `json:"last"`
	// Steps, the oldest first.
	Steps []MoveStep `json:"steps"`
	// Problem says what stands in the way; "" for nothing.
	Problem string `json:"problem"`
	// Copied is when the newest copy was confirmed.
	Copied time.Time `json:"copied,omitzero"`
}

// MoveStep is one step with its time by this host's clock.
type MoveStep struct {
	Phase MovePhase `json:"phase"`
	At    time.Time `json:"at"`
	// Text is for people.
	Text string `json:"text"`
}

// moveCalls are a client's calls about moves.
type moveCalls struct {
	client *Client
	rpc    agentv1connect.MoveServiceClient
}

// PortMoves lists the moves that the host takes part in, and the last ones that are over.
func (k moveCalls) PortMoves(ctx context.Context, q PortMoveOf) ([]PortMove, error) {
	return ask[[]PortMove](ctx, k.client, k.rpc.ListMoves, q)
}

// CopyMovingPort has a copy made now at the source, and returns when the target has it.
func (k moveCalls) CopyMovingPort(ctx context.Context, q PortMoveOf) (*PortMove, error) {
	return ask[*PortMove](ctx, k.client, k.rpc.CopyMovingPort, q)
}

// SilencePort makes a port silent whose guest has stopped to go on elsewhere.
func (k moveCalls) SilencePort(ctx context.Context, q PortMoveOf) (*PortMove, error) {
	return ask[*PortMove](ctx, k.client, k.rpc.SilencePort, q)
}

// CancelMove removes a port that waits for its guest.
func (k moveCalls) CancelMove(ctx context.Context, q PortMoveOf) error {
	return act(ctx, k.client, k.rpc.CancelMove, q)
}

// ReleaseMovedPort removes a port whose guest has left.
func (k moveCalls) ReleaseMovedPort(ctx context.Context, q PortMoveOf) error {
	return act(ctx, k.client, k.rpc.ReleaseMovedPort, q)
}

// moveAdapter answers the calls about moves.
type moveAdapter struct{ *adapter }

// ListMoves lists the moves that the host takes part in, and the last ones that are over.
func (a moveAdapter) ListMoves(ctx context.Context, m *agentv1.ListMovesRequest) (*agentv1.ListMovesResponse, error) {
	return answer[agentv1.ListMovesResponse](ctx, a.adapter, m, a.service.PortMoves)
}

// CopyMovingPort has a copy made now at the source, and returns when the target has it.
func (a moveAdapter) CopyMovingPort(ctx context.Context, m *agentv1.CopyMovingPortRequest) (
	*agentv1.CopyMovingPortResponse, error) {
	return answer[agentv1.CopyMovingPortResponse](ctx, a.adapter, m, a.service.CopyMovingPort)
}

// SilencePort makes a port silent whose guest has stopped to go on elsewhere.
func (a moveAdapter) SilencePort(ctx context.Context, m *agentv1.SilencePortRequest) (*agentv1.SilencePortResponse,
	error) {
	return answer[agentv1.SilencePortResponse](ctx, a.adapter, m, a.service.SilencePort)
}

// CancelMove removes a port that waits for its guest.
func (a moveAdapter) CancelMove(ctx context.Context, m *agentv1.CancelMoveRequest) (*agentv1.CancelMoveResponse,
	error) {
	return answer[agentv1.CancelMoveResponse](ctx, a.adapter, m, done(a.service.CancelMove))
}

// ReleaseMovedPort removes a port whose guest has left.
func (a moveAdapter) ReleaseMovedPort(ctx context.Context, m *agentv1.ReleaseMovedPortRequest) (
	*agentv1.ReleaseMovedPortResponse, error) {
	return answer[agentv1.ReleaseMovedPortResponse](ctx, a.adapter, m, done(a.service.ReleaseMovedPort))
}
