package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/proto"

	"heddle/api/heddle/agent/v1/agentv1connect"
	"heddle/internal/api/wire"
)

// maxAnswer bounds what an agent may send at once, in bytes.
const maxAnswer = 256 << 20

// Client talks to the agent behind a socket. It implements Service.
type Client struct {
	path    string
	remote  *remote // nil for an agent on this machine
	codec   wire.Codec
	state   agentv1connect.StateServiceClient
	stats   agentv1connect.StatsServiceClient
	change  agentv1connect.ChangeServiceClient
	ports   agentv1connect.PortServiceClient
	uplinks agentv1connect.UplinkServiceClient
	hosts   agentv1connect.HostPortServiceClient
	events  agentv1connect.EventServiceClient
	flows   agentv1connect.FlowServiceClient
	capture agentv1connect.CaptureServiceClient
	trace   agentv1connect.TraceServiceClient
	advise  agentv1connect.AdviseServiceClient
	config  agentv1connect.ConfigServiceClient
	clusterCalls
	moveCalls
	neighbourCalls
}

var _ Service = (*Client)(nil)

// NewClient returns a client. It does not connect yet; each call does.
func NewClient(socket string) *Client {
	asking := &http.Client{Transport: awaited{"the agent at " + socket, versioned{dialer(socket)}}}
	return newClient(socket, connect.NewClient(
		connecthttp.NewTransport(asking, "http://agent",
			connecthttp.WithReadMaxBytes(maxAnswer), connecthttp.WithSendMaxBytes(maxBody),
			connecthttp.WithCompressors())))
}

func newClient(socket string, rpc *connect.Client) *Client {
	c := &Client{
		path: socket, state: agentv1connect.NewStateServiceClient(rpc),
		stats:  agentv1connect.NewStatsServiceClient(rpc),
		change: agentv1connect.NewChangeServiceClient(rpc), ports: agentv1connect.NewPortServiceClient(rpc),
		uplinks: agentv1connect.NewUplinkServiceClient(rpc),
		hosts:   agentv1connect.NewHostPortServiceClient(rpc), events: agentv1connect.NewEventServiceClient(rpc),
		flows: agentv1connect.NewFlowServiceClient(rpc), capture: agentv1connect.NewCaptureServiceClient(rpc),
		trace: agentv1connect.NewTraceServiceClient(rpc), advise: agentv1connect.NewAdviseServiceClient(rpc),
		config: agentv1connect.NewConfigServiceClient(rpc),
	}
	c.clusterCalls = clusterCalls{c, agentv1connect.NewClusterServiceClient(rpc),
		agentv1connect.NewBenchmarkServiceClient(rpc)}
	c.moveCalls = moveCalls{c, agentv1connect.NewMoveServiceClient(rpc)}
	c.neighbourCalls = neighbourCalls{c, agentv1connect.NewNeighbourServiceClient(rpc)}
	return c
}

// dialer returns a transport that makes a connection to the socket for each call.
func dialer(socket string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}, DisableKeepAlives: true}
}

// versioned sends the version of the protocol, and checks the agent's.
type versioned struct{ next http.RoundTripper }

// versionError: the agent has another version of the protocol.
type versionError struct{ agent string }

func (e *versionError) Error() string {
	return fmt.Sprintf("the agent speaks version %q of the protocol, this command version %d: use the heddle program "+
		"the agent was started with, or restart it with this one", e.agent, Version)
}

// RoundTrip sends a request, and refuses the answer of an agent with another version of the protocol.
func (v versioned) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(versionHeader, strconv.Itoa(Version))
	resp, err := v.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if got := resp.Header.Get(versionHeader); got != strconv.Itoa(Version) {
		resp.Body.Close()
		return nil, &versionError{got}
	}
	return resp, nil
}

// message is a pointer to a generated message.
type message[M any] interface {
	*M
	proto.Message
}

// ask sends the request q, nil for an empty one, and reads the answer.
func ask[T, Q, R any, PQ message[Q], PR message[R]](ctx context.Context, c *Client,
	call func(context.Context, PQ) (PR, error), q any) (answer T, err error) {
	m := PQ(new(Q))
	if err := c.write(q, m); err != nil {
		return answer, err
	}
	r, err := call(ctx, m)
	if err != nil {
		return answer, c.explain(ctx, err)
	}
	if err := c.codec.GetAnswer(r, &answer); err != nil {
		return answer, fmt.Errorf("read the agent's answer: %w", err)
	}
	return answer, nil
}

// act sends a request that has no answer other than success.
func act[Q, R any, PQ message[Q], PR message[R]](ctx context.Context, c *Client,
	call func(context.Context, PQ) (PR, error), q any) error {
	_, err := ask[struct{}](ctx, c, call, q)
	return err
}

// write writes a request.
func (c *Client) write(q any, m proto.Message) error {
	if err := c.codec.Put(q, m); err != nil {
		return NewError(Invalid, err.Error())
	}
	return nil
}

// stream is the answers to a call, one after the other.
type stream[R any] interface {
	Receive() (*R, error)
	Close() error
}

// follow sends the request q and calls emit with every answer. It ends without an error when ctx ends, or when the
// agent does.
func follow[T, Q, R any, S stream[R], PQ message[Q], PR message[R]](ctx context.Context, c *Client,
	call func(context.Context, PQ) (S, error), q any, emit func(T) error) error {
	m := PQ(new(Q))
	if err := c.write(q, m); err != nil {
		return err
	}
	s, err := call(ctx, m)
	if err != nil {
		return c.over(ctx, err)
	}
	defer s.Close()
	for {
		r, err := s.Receive()
		if err != nil {
			return c.over(ctx, err)
		}
		var v T
		if err := c.codec.GetAnswer(PR(r), &v); err != nil {
			return fmt.Errorf("read the agent's answer: %w", err)
		}
		if err := emit(v); err != nil {
			return err
		}
	}
}

// over returns why a stream ended, nil for an end that is not an error.
func (c *Client) over(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	if err = c.explain(ctx, err); errors.Is(err, ErrEnded) {
		return nil
	}
	return err
}
