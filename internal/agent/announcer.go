package agent

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"heddle/internal/announce"
)

// frameSender is what the announcer needs of wire.Sender.
type frameSender interface {
	Send(ifindex uint32, frame []byte) error
	Close() error
}

// announcer sends what is to be announced when it is due, in a goroutine of its own. Its socket is open only while something
// waits.
type announcer struct {
	log  *slog.Logger
	open func() (frameSender, error)
	more chan struct{}
	quit chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex
	queue   announce.Queue
	sending int // frames that were taken out of the queue and are not on their way yet
}

func newAnnouncer(log *slog.Logger, open func() (frameSender, error)) *announcer {
	n := &announcer{log: log, open: open, more: make(chan struct{}, 1), quit: make(chan struct{})}
	n.done.Go(n.run)
	return n
}

// close ends it; what still waits is not sent.
func (n *announcer) close() error {
	close(n.quit)
	n.done.Wait()
	return nil
}

// change changes what is to be announced.
func (n *announcer) change(f func(*announce.Queue)) {
	n.mu.Lock()
	f(&n.queue)
	n.mu.Unlock()
	select {
	case n.more <- struct{}{}:
	default:
	}
}

// take gives what is due and when there is more.
func (n *announcer) take() (due []announce.Announcement, next time.Time, waits bool, dropped uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	due = n.queue.Due(time.Now())
	n.sending = len(due)
	next, waits = n.queue.Next()
	return due, next, waits, n.queue.Dropped()
}

// waiting is how many frames are still to be sent.
func (n *announcer) waiting() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.queue.Waiting() + n.sending
}

// sent is called when what take gave has been sent.
func (n *announcer) sent() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sending = 0
}

func (n *announcer) run() {
	var socket frameSender
	var said uint64
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, next, waits, dropped := n.take()
		socket = n.send(socket, due)
		n.sent()
		if dropped > said {
			n.log.Warn("too much to announce at once: the physical network learns of some MACs when they send", "frames", dropped-said)
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

// send sends the frames on a socket that is opened where there is none. A frame that cannot be sent is left out: its device went
// down, and what takes its place is announced there.
func (n *announcer) send(socket frameSender, due []announce.Announcement) frameSender {
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
		errs = append(errs, socket.Send(a.Device, a.Frame))
	}
	n.failed(errors.Join(errs...))
	return socket
}

func (n *announcer) failed(err error) {
	if err != nil {
		n.log.Debug("announcements not sent", "err", err)
	}
}
