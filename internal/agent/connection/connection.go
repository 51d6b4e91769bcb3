package connection

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
)

// Connection is the host's connection to the controllers of its cluster. Its lock is held for moments. All methods may
// be called from any goroutine.
type Connection struct {
	log     *slog.Logger
	stopped <-chan struct{} // closed when the agent's loop has ended
	dir     string          // the record's
	// options are what the agent is in a conversation; changed are called when what the host has may be another.
	options func() cluster.Options
	changed []func()

	joining sync.Mutex // held by the command that joins or leaves
	mu      sync.Mutex
	record  *cluster.Record // nil where the host is in no cluster
	client  *cluster.Client
	stop    context.CancelFunc
	done    chan struct{}            // closed when the newest conversation has ended
	closed  bool                     // no conversation begins any more
	offered *controllerv1.HostOffers // the newest; nil before the first
	stands  Standing
}

// Standing is how the conversation stands.
type Standing struct {
	// Controller is the address of the controller that answers, "" without one.
	Controller string
	// Since is when that began.
	Since time.Time
	// Problem says what is wrong; "" for nothing.
	Problem string
}

// New returns a connection of a host in no cluster. stopped is closed when the agent's loop has ended.
func New(log *slog.Logger, stopped <-chan struct{}) *Connection {
	return &Connection{log: log, stopped: stopped}
}

// Serve says what the agent is in a conversation. It is called before the first one begins.
func (c *Connection) Serve(options func() cluster.Options) { c.options = options }

// Follow has f called, in the loop, when what the host has may be another. It is called before the loop runs.
func (c *Connection) Follow(f func()) { c.changed = append(c.changed, f) }

// Open reads the record. A damaged one does not keep the host from going on by what it has.
func (c *Connection) Open(dir string) {
	record, err := cluster.Load(dir)
	c.dir, c.record, c.stands.Since = dir, record, time.Now()
	if err != nil && !errors.Is(err, cluster.ErrNone) {
		c.stands.Problem = err.Error()
		c.log.Error("the host's part in a cluster cannot be read: the host goes on by what it has", "err", err)
	}
}

// Dir is the directory of the record.
func (c *Connection) Dir() string { return c.dir }

// Hold keeps others from joining, leaving, and beginning anew until release is called.
func (c *Connection) Hold() (release func()) {
	c.joining.Lock()
	return c.joining.Unlock
}

// Begin begins the conversation, if the host is in a cluster.
func (c *Connection) Begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.record == nil || c.client != nil || c.closed {
		return
	}
	begun, err := c.record.Begin(time.Now())
	if err != nil { // the host goes on: controllers can't tell what an earlier start of the agent has asked for late
		c.log.Warn("this start of the agent has no number", "err", err)
	}
	o := c.options()
	o.Membership, o.Log, o.Begun, o.Connected = c.record, c.log, begun, c.connected
	ctx, stop := context.WithCancel(context.Background())
	client, done := cluster.New(o), make(chan struct{})
	c.client, c.stop, c.done = client, stop, done
	if c.offered != nil {
		client.Offer(c.offered)
	}
	go func() {
		defer close(done)
		client.Run(ctx)
	}()
}

// End ends the conversation and waits for that, also where somebody else has it ended already.
func (c *Connection) End() {
	c.mu.Lock()
	stop, done := c.stop, c.done
	c.client, c.stop = nil, nil
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	if done != nil {
		<-done
	}
}

// Anew begins the conversation anew, beside the loop: the controllers are told then what the host has.
func (c *Connection) Anew() {
	go func() {
		defer c.Hold()()
		select {
		case <-c.stopped:
		default:
			c.End()
			c.Begin()
		}
	}()
}

// Lost takes in which addresses the host has lost. The conversation begins anew if it had one of them: a card that
// flaps beside it does not disturb it.
func (c *Connection) Lost(gone []netip.Addr) {
	if client := c.talks(); client != nil && client.Uses(gone) {
		c.Anew()
	}
}

// Stand takes in how the conversation stands. It has stood so since before if that is no news.
func (c *Connection) Stand(now Standing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was := c.stands; now.Controller == was.Controller && (was.Problem != "" || now.Problem == "") {
		now.Since = was.Since
	}
	c.stands = now
}

// connected is Stand for a controller that answers, "" for none, and what is wrong.
func (c *Connection) connected(controller string, err error) {
	now := Standing{Controller: controller, Since: time.Now()}
	if err != nil {
		now.Problem = err.Error()
	}
	c.Stand(now)
}

// talks is the client of the present conversation, nil without one.
func (c *Connection) talks() *cluster.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client
}

// Member is who the host is in its cluster, nil where it is in none, and how its conversation stands.
func (c *Connection) Member() (*cluster.Record, Standing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.record, c.stands
}

// Joined makes the host a member of the record's cluster.
func (c *Connection) Joined(record *cluster.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record, c.stands.Problem = record, ""
}

// Left makes the host one of no cluster, and returns the record of the one that it was in.
func (c *Connection) Left() *cluster.Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	record := c.record
	c.record, c.stands.Controller, c.stands.Problem = nil, "", ""
	return record
}

// Close ends the conversation. No other begins after it, though one may just be about to: see Anew.
func (c *Connection) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.End()
	return nil
}
