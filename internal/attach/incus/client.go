package incus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"

	"heddle/internal/spec/printable"
)

// maxAnswer limits an answer of Incus, in bytes: 10,000 instances need some 60 MB.
const maxAnswer = 256 << 20

// Client asks Incus by its REST API at a unix socket.
type Client struct {
	socket string
	http   http.Client
}

// NewClient returns one for Incus's socket, /var/lib/incus/unix.socket. It connects when it is asked.
func NewClient(socket string) *Client {
	return &Client{socket: socket, http: http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
		MaxIdleConns: 1,
	}}}
}

// Instances are the containers and VMs of all projects.
func (c *Client) Instances(ctx context.Context) ([]Instance, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://incus/1.0/instances?recursion=1&all-projects=true", nil)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(q)
	if err != nil {
		return nil, fmt.Errorf("ask Incus at %s: %w", c.socket, err)
	}
	defer answer.Body.Close()
	var out struct {
		Error    string     `json:"error"`
		Metadata []Instance `json:"metadata"`
	}
	body := io.LimitReader(answer.Body, maxAnswer)
	if err := json.NewDecoder(body).Decode(&out); answer.StatusCode == http.StatusOK && err != nil {
		return nil, fmt.Errorf("read the answer of Incus at %s: %w", c.socket, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask Incus at %s: it answers %s: %s", c.socket, answer.Status, printable.Text(out.Error))
	}
	return out.Metadata, nil
}
