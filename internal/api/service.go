package api

import (
	"context"

	"heddle/internal/diagnose"
)

// Service has the calls that an agent answers; Client is the caller's side of them.
type Service interface {
	State(context.Context) (*State, error)
	Stats(context.Context) ([]Stats, error)
	// Vitals returns, for each switch, sums of the counters of its ports and uplinks.
	Vitals(context.Context) ([]Vitals, error)
	// Accounts checks the counters of every port and uplink against the accounting invariant (S94).
	Accounts(context.Context) ([]PortAccount, error)
	MACs(context.Context) ([]MAC, error)
	// ForgetMACs removes learned addresses, until they are learned again, and returns them.
	ForgetMACs(context.Context, ForgetMACs) ([]MAC, error)
	// Metrics returns all metrics in Prometheus' text format.
	Metrics(context.Context) (string, error)
	// Trace returns what would happen to frames; no frame leaves and nothing changes.
	Trace(context.Context, diagnose.Request) (*diagnose.Report, error)
	// Advise returns what is misconfigured; it measures for the time in q.
	Advise(context.Context, AdviseRequest) (*Advice, error)
	// Events calls emit with the kept events and, unless q says otherwise, with new ones, until ctx ends or emit fails.
	Events(ctx context.Context, q Follow, emit func(Events) error) error
	// Capture calls emit with captured frames, until ctx ends, EndCapture is called or emit fails.
	Capture(ctx context.Context, q Capture, emit func(CaptureEvent) error) error
	EndCapture(context.Context, EndCapture) error
	Apply(context.Context, Apply) (*Applied, error)
	// Foresee returns what a change of the host's slice would newly lose of what ports sent lately; nothing changes.
	Foresee(context.Context, Foresee) (*diagnose.Foreseen, error)
	Connect(context.Context, Connect) (*Applied, error)
	Reconnect(context.Context, Connect) (*Applied, error)
	// ConnectIncoming makes a port whose guest will arrive by migration; the port waits for it (S99).
	ConnectIncoming(context.Context, Incoming) (*Applied, error)
	Activate(context.Context, Activate) error
	Expect(context.Context, Expect) error
	Disconnect(context.Context, Disconnect) error
	Block(context.Context, Block) (*Applied, error)
	Move(context.Context, Move) (*Applied, error)
	Progress(context.Context) (*Progress, error)
	Stop(context.Context) error
	UplinkService
	ClusterService
	HostPortService
	TrialService
	ConfigService
	FlowService
	MoveService
	NeighbourService
	BenchmarkService
}
