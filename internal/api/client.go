package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"

	"heddle/internal/diagnose"
)

// ErrNoAgent says that no agent of that name is running.
var ErrNoAgent = errors.New("no agent is running")

// ErrEnded says that the agent ended before it answered.
var ErrEnded = errors.New("the agent ended before it answered")

// Client talks to the agent behind a socket. It implements Service.
type Client struct {
	path string
	http http.Client
}

var _ Service = (*Client)(nil)

// NewClient does not connect yet; each call does.
func NewClient(socket string) *Client {
	c := &Client{path: socket}
	c.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}, DisableKeepAlives: true}
	return c
}

// State is everything the agent has in force.
func (c *Client) State(ctx context.Context) (*State, error) {
	return call[*State](ctx, c, http.MethodGet, "/state", nil)
}

// Stats are all ports' and uplinks' counters.
func (c *Client) Stats(ctx context.Context) ([]Stats, error) {
	return call[[]Stats](ctx, c, http.MethodGet, "/stats", nil)
}

// Accounts says of every port and uplink whether its counters add up.
func (c *Client) Accounts(ctx context.Context) ([]PortAccount, error) {
	return call[[]PortAccount](ctx, c, http.MethodGet, "/accounts", nil)
}

// Metrics are all metrics in Prometheus' text format.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	return call[string](ctx, c, http.MethodGet, "/metrics", nil)
}

// MACs are the addresses the switches know.
func (c *Client) MACs(ctx context.Context) ([]MAC, error) {
	return call[[]MAC](ctx, c, http.MethodGet, "/macs", nil)
}

// Trace says what would become of frames.
func (c *Client) Trace(ctx context.Context, q diagnose.Request) (*diagnose.Report, error) {
	return call[*diagnose.Report](ctx, c, http.MethodPost, "/trace", q)
}

// Advise says what is misconfigured.
func (c *Client) Advise(ctx context.Context, q AdviseRequest) (*Advice, error) {
	return call[*Advice](ctx, c, http.MethodPost, "/advise", q)
}

// Apply replaces the configuration file, all or nothing.
func (c *Client) Apply(ctx context.Context, q Apply) (*Applied, error) {
	return call[*Applied](ctx, c, http.MethodPost, "/apply", q)
}

// Connect makes a port.
func (c *Client) Connect(ctx context.Context, q Connect) (*Applied, error) {
	return call[*Applied](ctx, c, http.MethodPost, "/ports/connect", q)
}

// Reconnect makes a port, or makes the one of that name what is asked for. Another run-time port gives up the device.
func (c *Client) Reconnect(ctx context.Context, q Connect) (*Applied, error) {
	return call[*Applied](ctx, c, http.MethodPost, "/ports/reconnect", q)
}

// ConnectIncoming makes a port whose guest is to arrive by a migration: it waits for it.
func (c *Client) ConnectIncoming(ctx context.Context, q Connect) (*Applied, error) {
	return call[*Applied](ctx, c, http.MethodPost, "/ports/connect-incoming", q)
}

// Expect says that a guest is to arrive by a migration whose ports are about to be connected.
func (c *Client) Expect(ctx context.Context, q Expect) error {
	return c.act(ctx, "/ports/expect", q)
}

// Activate says that the guest of a port that waits for it runs here.
func (c *Client) Activate(ctx context.Context, q Activate) error {
	return c.act(ctx, "/ports/activate", q)
}

// Disconnect ends a port that was connected by command.
func (c *Client) Disconnect(ctx context.Context, q Disconnect) error {
	return c.act(ctx, "/ports/disconnect", q)
}

// Block sets or lifts the blocked state of a port.
func (c *Client) Block(ctx context.Context, q Block) (*Applied, error) {
	return call[*Applied](ctx, c, http.MethodPost, "/ports/block", q)
}

// Move puts a port into another port group.
func (c *Client) Move(ctx context.Context, q Move) (*Applied, error) {
	return call[*Applied](ctx, c, http.MethodPost, "/ports/move", q)
}

// Progress is how far the agent is with attaching devices.
func (c *Client) Progress(ctx context.Context) (*Progress, error) {
	return call[*Progress](ctx, c, http.MethodGet, "/progress", nil)
}

// Stop ends the agent; the kernel goes on forwarding.
func (c *Client) Stop(ctx context.Context) error { return c.act(ctx, "/stop", none{}) }

func (c *Client) act(ctx context.Context, path string, q any) error {
	_, err := call[none](ctx, c, http.MethodPost, path, q)
	return err
}

func call[T any](ctx context.Context, c *Client, method, path string, q any) (T, error) {
	var zero, v T
	resp, err := c.send(ctx, method, path, q)
	if err != nil {
		return zero, err
	}
	defer resp.Body.Close()
	d := json.NewDecoder(resp.Body)
	if resp.StatusCode == http.StatusOK {
		if err := d.Decode(&v); err != nil {
			return zero, fmt.Errorf("read the agent's answer: %w", err)
		}
		return v, nil
	}
	return zero, refusal(resp, d, path)
}

// send sends a request; q is its body, nil for none.
func (c *Client) send(ctx context.Context, method, path string, q any) (*http.Response, error) {
	var body io.Reader
	if q != nil {
		b, err := json.Marshal(q)
		if err != nil {
			return nil, err
		}
		if more, ok := q.(interface{ behind() string }); ok {
			b = append(append(b, '\n'), more.behind()...)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set(versionHeader, strconv.Itoa(Version))
	resp, err := c.http.Do(req)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("gave up waiting for the agent at %s, what it was asked to do may be in force or not: %w", c.path, err)
	}
	if err != nil {
		return nil, c.explain(err)
	}
	return resp, nil
}

// refusal reads what the agent has against a request.
func refusal(resp *http.Response, d *json.Decoder, path string) error {
	e := &Error{}
	if err := d.Decode(e); err != nil || len(e.Lines) == 0 {
		return fmt.Errorf("the agent answered %s to %s: it is of another version; restart it with this program", resp.Status, path)
	}
	return e
}

// explain tells the errors an operator meets apart: no agent, one that ended, and no permission.
func (c *Client) explain(err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w at %s: start one with \"heddle agent\", or name another with --agent or HEDDLE_AGENT", ErrNoAgent, c.path)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%w at %s: what it was asked to do may be in force or not; ask again when it runs", ErrEnded, c.path)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("no permission for the agent's socket %s: run the command as root", c.path)
	default:
		return fmt.Errorf("ask the agent at %s: %w", c.path, err)
	}
}
