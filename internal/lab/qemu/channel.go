package qemu

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxCommand is the longest line that the guest's serial port buffers before anyone reads it.
	maxCommand = 32 << 10
	// maxAnswer limits the line of a command's output, so that a runaway command cannot fill this process's memory.
	maxAnswer = 32 << 20
	// writeTimeout is how long QEMU may take to accept a line.
	writeTimeout = 10 * time.Second
)

// ErrEnded means that a guest ended before it had run a command.
var ErrEnded = errors.New("the guest has ended")

// Result is the result of a command in the guest.
type Result struct {
	Stdout, Stderr string
	ExitCode       int // 128+n when signal n ended it
}

// channel runs commands by lines over the guest's second serial port; image/init.sh is the other end.
type channel struct {
	conn  net.Conn
	write sync.Mutex
	// ready is closed when the guest serves commands, or when it never will: then dead is set.
	ready chan struct{}

	mu      sync.Mutex
	next    int
	pending map[string]chan Result
	isReady bool
	release string
	dead    error
}

// newChannel takes over the connection. A guest that has booted elsewhere doesn't say again that it is ready.
func newChannel(conn net.Conn, booted bool) *channel {
	c := &channel{conn: conn, ready: make(chan struct{}), pending: map[string]chan Result{}, isReady: booted}
	if booted {
		close(c.ready)
	}
	go func() {
		c.end(c.read())
		_ = conn.Close() // the guest is gone, or sends garbage
	}()
	return c
}

// read handles the guest's lines until the connection ends.
func (c *channel) read() error {
	lines := bufio.NewScanner(c.conn)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		verb, rest, _ := strings.Cut(strings.TrimRight(lines.Text(), "\r"), " ")
		switch verb {
		case "ready":
			c.mu.Lock()
			c.release = rest
			if !c.isReady {
				c.isReady = true
				close(c.ready)
			}
			c.mu.Unlock()
		case "failed":
			return fmt.Errorf("the guest reports: %s", rest)
		case "done":
			if err := c.finish(rest); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("command channel: %w", err)
	}
	return ErrEnded
}

// finish passes a command's result to the caller that waits for it.
func (c *channel) finish(text string) error {
	f := strings.Fields(text)
	if len(f) != 4 {
		return fmt.Errorf("command channel: the guest sent a malformed answer of %d words", len(f))
	}
	code, err1 := strconv.Atoi(f[1])
	stdout, err2 := base64.StdEncoding.DecodeString(strings.TrimPrefix(f[2], "="))
	stderr, err3 := base64.StdEncoding.DecodeString(strings.TrimPrefix(f[3], "="))
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("command channel: the guest sent a malformed answer: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.pending[f[0]]; answer != nil {
		answer <- Result{Stdout: string(stdout), Stderr: string(stderr), ExitCode: code}
		delete(c.pending, f[0])
	}
	return nil
}

// end refuses all further commands with the reason.
func (c *channel) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = err
	if !c.isReady {
		c.isReady = true
		close(c.ready)
	}
	for id, answer := range c.pending {
		close(answer)
		delete(c.pending, id)
	}
}

// reason is why no command can be run, or nil.
func (c *channel) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// run runs a shell command in the guest. If ctx ends first, the command is killed with all processes of its session.
func (c *channel) run(ctx context.Context, command string) (Result, error) {
	text := base64.StdEncoding.EncodeToString([]byte(command))
	if len(text) > maxCommand {
		return Result{}, fmt.Errorf("command of %d bytes is too long: put it into a file (Options.Files)", len(command))
	}
	answer := make(chan Result, 1)
	c.mu.Lock()
	if c.dead != nil {
		defer c.mu.Unlock()
		return Result{}, c.dead
	}
	c.next++
	id := strconv.Itoa(c.next)
	c.pending[id] = answer
	c.mu.Unlock()
	if err := c.send("run " + id + " " + text); err != nil {
		return Result{}, err
	}
	select {
	case r, ok := <-answer:
		if !ok {
			return Result{}, c.reason()
		}
		return r, nil
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
		return Result{}, errors.Join(fmt.Errorf("command %.60q in the guest: %w", command, ctx.Err()),
			c.send("kill "+id))
	}
}

// send writes one line.
func (c *channel) send(line string) error {
	c.write.Lock()
	defer c.write.Unlock()
	// A guest that hangs does not read; its line must not hold up the caller for ever.
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("command channel: %w", err)
	}
	if _, err := io.WriteString(c.conn, line+"\n"); err != nil {
		return fmt.Errorf("command channel: %w", err)
	}
	return nil
}
