package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// maxMessage limits one message, in bytes; the longest known message of QEMU, its schema, has 200 kB.
	maxMessage = 1 << 20
	// maxDepth limits how deep a message's values are nested.
	maxDepth = 32
	// maxPerSecond limits how many messages may come within a second.
	maxPerSecond = 2000
	// maxBytesPerSecond limits how much may come within a second. For a guest that changes its filters all the
	// time, an answer of some 30 kB per card is read ten times a second; reading JSON takes a core 10 ns or more
	// per byte.
	maxBytesPerSecond = 4 << 20
	// writeTimeout is how long the other side may take to accept a command.
	writeTimeout = 10 * time.Second
)

// Event is an asynchronous message from QEMU, like STOP, RESUME or NIC_RX_FILTER_CHANGED.
type Event struct {
	Name string
	Data json.RawMessage
	Time time.Time // QEMU's own stamp
}

// Error is QEMU's refusal of a command. Desc is QEMU's text, which a guest's owner may have chosen.
type Error struct{ Class, Desc string }

func (e *Error) Error() string { return e.Class + ": " + e.Desc }

// ErrClosed means that the connection has ended.
var ErrClosed = errors.New("QEMU closed its control connection")

// ErrFlood means that the other side sent more than a monitor may send.
var ErrFlood = fmt.Errorf("it sent more than %d messages or %d MiB within a second", maxPerSecond,
	maxBytesPerSecond>>20)

// Client is one connection to a monitor. Its methods may be called from several goroutines.
type Client struct {
	conn    net.Conn
	onEvent func(Event)
	write   sync.Mutex
	done    chan struct{}

	mu      sync.Mutex
	next    uint64
	pending map[uint64]chan message
	dead    error // set when the connection ended
}

// message is any message that QEMU sends.
type message struct {
	ID     *uint64         `json:"id"`
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
	Event     string          `json:"event"`
	Data      json.RawMessage `json:"data"`
	Timestamp struct {
		Seconds      int64 `json:"seconds"`
		Microseconds int64 `json:"microseconds"`
	} `json:"timestamp"`
}

// Dial connects to the monitor at a unix socket and leaves negotiation mode.
func Dial(ctx context.Context, path string, onEvent func(Event)) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return New(ctx, conn, onEvent)
}

// New takes over a connection and leaves negotiation mode. onEvent, which may be nil, is called with QEMU's events, in
// order, from one goroutine; it must not block.
func New(ctx context.Context, conn net.Conn, onEvent func(Event)) (*Client, error) {
	c := &Client{conn: conn, onEvent: onEvent, pending: map[uint64]chan message{}, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.fail(c.read())
	}()
	// QEMU accepts commands before its greeting has been read.
	if _, err := c.Execute(ctx, "qmp_capabilities", nil); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close ends the connection and waits until no event is being handled.
func (c *Client) Close() error {
	err := c.conn.Close()
	<-c.done
	return err
}

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// read passes on answers and events until the connection ends.
func (c *Client) read() error {
	rate := limiter{from: c.conn, now: time.Now}
	lines := bufio.NewScanner(&rate)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		if !rate.message() {
			return ErrFlood
		}
		m, err := parse(lines.Bytes())
		if err != nil {
			return err
		}
		c.deliver(m)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("it sent a message of more than %d bytes", maxMessage)
	case err != nil:
		return err
	}
	return io.EOF
}

// parse reads one message, which is one line of JSON.
func parse(line []byte) (m message, err error) {
	if tooDeep(line) {
		return m, fmt.Errorf("it sent a message nested more than %d deep", maxDepth)
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return m, errors.New("it sent something that is not a message of the protocol")
	}
	return m, nil
}

// tooDeep reports whether JSON values are nested more than maxDepth deep.
func tooDeep(line []byte) bool {
	depth, quoted, escaped := 0, false, false
	for _, b := range line {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = b == '\\', b != '"'
		case b == '"':
			quoted = true
		case b == '{' || b == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return false
}

func (c *Client) deliver(m message) {
	switch {
	case m.Event != "" && c.onEvent != nil:
		stamp := time.Unix(m.Timestamp.Seconds, m.Timestamp.Microseconds*1000)
		c.onEvent(Event{Name: m.Event, Data: m.Data, Time: stamp})
	case m.ID != nil:
		c.mu.Lock()
		answer := c.pending[*m.ID]
		delete(c.pending, *m.ID)
		c.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}

// fail ends all waiting calls with the error.
func (c *Client) fail(why error) {
	c.conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = errors.Join(ErrClosed, why)
	for id, answer := range c.pending {
		close(answer)
		delete(c.pending, id)
	}
}

// Err returns why the connection ended, nil before that: ErrClosed, together with ErrFlood if this side closed it for
// that reason.
func (c *Client) Err() error { return c.reason() }

func (c *Client) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// Execute runs one command and returns its "return" value. args is anything that marshals to the JSON object of
// arguments, or nil. A refusal is an *Error.
func (c *Client) Execute(ctx context.Context, name string, args any) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil { // otherwise a monitor that answers at once might win by chance
		return nil, fmt.Errorf("QMP %s: %w", name, err)
	}
	answer := make(chan message, 1)
	c.mu.Lock()
	if c.dead != nil {
		defer c.mu.Unlock()
		return nil, fmt.Errorf("QMP %s: %w", name, c.dead)
	}
	c.next++
	id := c.next
	c.pending[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()
	if err := c.send(id, name, args); err != nil {
		return nil, fmt.Errorf("QMP %s: %w", name, err)
	}
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("QMP %s: %w", name, ctx.Err())
	case m, ok := <-answer:
		switch {
		case !ok:
			return nil, fmt.Errorf("QMP %s: %w", name, c.reason())
		case m.Error != nil:
			return nil, fmt.Errorf("QMP %s: %w", name, &Error{m.Error.Class, m.Error.Desc})
		}
		return m.Return, nil
	}
}

// send writes one command.
func (c *Client) send(id uint64, name string, args any) error {
	line, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        uint64 `json:"id"`
	}{name, args, id})
	if err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	c.write.Lock()
	defer c.write.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err = c.conn.Write(append(line, '\n'))
	return err
}

// limiter reads the connection and counts what comes per second.
type limiter struct {
	from            io.Reader
	now             func() time.Time
	began           time.Time
	messages, bytes int
}

// turn begins a new second when the last one is over.
func (l *limiter) turn() {
	if now := l.now(); now.Sub(l.began) >= time.Second {
		l.began, l.messages, l.bytes = now, 0, 0
	}
}

// message counts one message; false if it exceeds the limit, or belongs to a message that did.
func (l *limiter) message() bool {
	l.turn()
	l.messages++
	return l.messages <= maxPerSecond && l.bytes <= maxBytesPerSecond
}

// Read fails if more has arrived than the limit allows.
func (l *limiter) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	l.turn()
	if l.bytes += n; l.bytes > maxBytesPerSecond {
		return 0, ErrFlood
	}
	return n, err
}
