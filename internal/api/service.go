package api

import (
	"context"

	"heddle/internal/diagnose"
)

// Service is what an agent answers; Client is the same from the other side.
type Service interface {
	State(context.Context) (*State, error)
	Stats(context.Context) ([]Stats, error)
	// Accounts holds the counters of every port and uplink against what must be true of them (S94).
	Accounts(context.Context) ([]PortAccount, error)
	MACs(context.Context) ([]MAC, error)
	// ForgetMACs removes learned addresses, until they are heard again, and returns them.
	ForgetMACs(context.Context, ForgetMACs) ([]MAC, error)
	// Metrics are all metrics in Prometheus' text format.
	Metrics(context.Context) (string, error)
	// Trace says what would become of frames; nothing leaves and nothing changes.
	Trace(context.Context, diagnose.Request) (*diagnose.Report, error)
	// Advise says what is misconfigured; it measures for as long as q says.
	Advise(context.Context, AdviseRequest) (*Advice, error)
	// Events calls emit with what is kept and, unless q says otherwise, with what comes, until ctx ends or emit fails.
	Events(ctx context.Context, q Follow, emit func(Events) error) error
	// Capture calls emit with what is captured, until ctx ends, EndCapture is called or emit fails.
	Capture(ctx context.Context, q Capture, emit func(CaptureEvent) error) error
	EndCapture(context.Context, EndCapture) error
	Apply(context.Context, Apply) (*Applied, error)
	Connect(context.Context, Connect) (*Applied, error)
	Reconnect(context.Context, Connect) (*Applied, error)
	// ConnectIncoming makes a port whose guest is to arrive by a migration, and which waits for it (S99).
	ConnectIncoming(context.Context, Connect) (*Applied, error)
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
}
