package announce

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Sender sends frames on devices, as wire.Sender does. It is the part of a socket that an Announcer needs.
type Sender interface {
	Send(ifindex uint32, frame []byte) error
	// SendThrough sends by way of the program at the device's egress.
	SendThrough(ifindex uint32, frame []byte) error
	Close() error
}

// Announcer sends announcements when they are due, in a goroutine of its own. Its socket is open only while
// announcements are queued.
type Announcer struct {
	log  *slog.Logger
	open func() (Sender, error)
	more chan struct{}
	quit chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex
	queue   Queue
	sending int // frames taken out of the queue and not sent yet
}

// Start returns an Announcer with an empty queue; open opens the socket by which it sends.
func Start(log *slog.Logger, open func() (Sender, error)) *Announcer {
	n := &Announcer{log: log, open: open, more: make(chan struct{}, 1), quit: make(chan struct{})}
	n.done.Go(n.run)
	return n
}

// Close ends the goroutine; queued announcements are not sent.
func (n *Announcer) Close() error {
	close(n.quit)
	n.done.Wait()
	return nil
}

// Change calls f with the queue, which f may change.
func (n *Announcer) Change(f func(*Queue)) {
	n.mu.Lock()
	f(&n.queue)
	n.mu.Unlock()
	select {
	case n.more <- struct{}{}:
	default:
	}
}

// take returns the announcements that are due, and when the next are.
func (n *Announcer) take() (due []Announcement, next time.Time, waits bool, dropped uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	due = n.queue.Due(time.Now())
	n.sending = len(due)
	next, waits = n.queue.Next()
	return due, next, waits, n.queue.Dropped()
}

// Waiting returns how many frames are still to be sent.
func (n *Announcer) Waiting() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.queue.Waiting() + n.sending
}

// sent is called when the frames that take returned have been sent.
func (n *Announcer) sent() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sending = 0
}

func (n *Announcer) run() {
	var socket Sender
	var said uint64
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, next, waits, dropped := n.take()
		socket = n.send(socket, due)
		n.sent()
		if dropped > said {
			n.log.Warn("too much to announce at once: the physical network learns of some MACs when they send",
				"frames", dropped-said)
			said = dropped
		}
		timer.Stop()
		if waits {
			timer.Reset(time.Until(next))
		} else if socket != nil {
			n.failed(socket.Close())
			socket = nil
		}
		select {
		case <-n.more:
		case <-timer.C:
		case <-n.quit:
			if socket != nil {
				n.failed(socket.Close())
			}
			return
		}
	}
}

// send sends the frames on the socket, which it opens if there is none. A frame that cannot be sent is dropped: its
// device went down, and the move to another uplink is announced there.
func (n *Announcer) send(socket Sender, due []Announcement) Sender {
	if len(due) == 0 {
		return socket
	}
	if socket == nil {
		var err error
		if socket, err = n.open(); err != nil {
			n.failed(err)
			return nil
		}
	}
	var errs []error
	for _, a := range due {
		send := socket.Send
		if a.Tunnel {
			send = socket.SendThrough
		}
		errs = append(errs, send(a.Device, a.Frame))
	}
	n.failed(errors.Join(errs...))
	return socket
}

func (n *Announcer) failed(err error) {
	if err != nil {
		n.log.Debug("announcements not sent", "err", err)
	}
}
