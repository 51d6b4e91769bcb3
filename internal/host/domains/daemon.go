package domains

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"

	"github.com/digitalocean/go-libvirt"

	"heddle/internal/host/guest"
)

// daemon is a connection to libvirt's daemon that is registered for events.
type daemon interface {
	// Events delivers the events of domains; it is closed when the connection has ended.
	Events() <-chan happened
	// Run asks where a domain runs. For a domain that the daemon does not know it returns guest.RunUnknown.
	Run(ctx context.Context, uuid string) (guest.Run, error)
	// XML returns the description of a domain; "" for a domain that the daemon does not know.
	XML(ctx context.Context, uuid string) (string, error)
	// Close ends the connection and all pending questions.
	Close()
}

// happened is an event of a domain.
type happened struct {
	uuid string
	run  guest.Run
	// devices: a device was plugged or unplugged. It does not show where the domain runs.
	devices bool
}

// sockets returns the daemon's read-only sockets: that of the daemon for QEMU alone, on a host with the modular
// daemons, and that of the daemon for everything.
func sockets(dir string) []string {
	return []string{filepath.Join(dir, "virtqemud-sock-ro"), filepath.Join(dir, "libvirt-sock-ro")}
}

// client is a daemon that is reached through its socket.
type client struct {
	conn   *framed
	rpc    *libvirt.Libvirt
	events chan happened
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// dial connects to the first socket on which a daemon listens. The context only limits the connecting.
func dial(ctx context.Context, dir string) (daemon, error) {
	var errs []error
	for _, path := range sockets(dir) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err == nil {
			return open(ctx, conn)
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// open registers for events on a connection, and closes the connection if that fails.
func open(ctx context.Context, conn net.Conn) (daemon, error) {
	f := &framed{Conn: conn, gone: make(chan struct{})}
	opened := context.AfterFunc(ctx, func() { f.Close() })
	c := &client{conn: f, rpc: libvirt.NewWithDialer(f), events: make(chan happened)}
	following, stop := context.WithCancel(context.Background())
	c.stop = stop
	err := c.rpc.ConnectToURI(libvirt.QEMUSystem)
	if err == nil {
		err = c.follow(following)
	}
	if err == nil && !opened() { // the time has just run out
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("follow libvirt's domains: %w", err)
	}
	return c, nil
}

// follow registers for the events of all domains, and forwards them.
func (c *client) follow(ctx context.Context) error {
	var all sync.WaitGroup
	var errs []error
	subscribe := func(id libvirt.DomainEventID) {
		events, err := c.rpc.SubscribeEvents(ctx, id, nil)
		if errs = append(errs, err); err == nil {
			all.Go(func() { c.pass(ctx, events) })
		}
	}
	for _, id := range []libvirt.DomainEventID{libvirt.DomainEventIDLifecycle, libvirt.DomainEventIDDeviceAdded,
		libvirt.DomainEventIDDeviceRemoved} {
		subscribe(id)
	}
	c.ended.Go(func() {
		all.Wait()
		close(c.events)
	})
	return errors.Join(errs...)
}

// pass forwards events of one kind until the connection ends. It continues to read what the library still sends, so
// that the library can end.
func (c *client) pass(ctx context.Context, events <-chan any) {
	defer func() {
		for range events { // the library closes the channel when its context has ended
		}
	}()
	defer c.stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.conn.gone:
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			select {
			case c.events <- meaning(e):
			case <-ctx.Done():
				return
			}
		}
	}
}

// meaning returns what an event of the library says.
func meaning(e any) happened {
	switch e := e.(type) {
	case *libvirt.DomainEventCallbackLifecycleMsg:
		return happened{uuid: uuidText(e.Msg.Dom.UUID), run: runByEvent(e.Msg.Event, e.Msg.Detail)}
	case *libvirt.DomainEventCallbackDeviceAddedMsg:
		return happened{uuid: uuidText(e.Dom.UUID), devices: true}
	case *libvirt.DomainEventCallbackDeviceRemovedMsg:
		return happened{uuid: uuidText(e.Msg.Dom.UUID), devices: true}
	}
	return happened{}
}

func (c *client) Events() <-chan happened { return c.events }

// Close closes the connection first: the library's own way to end asks the daemon, which may not answer.
func (c *client) Close() {
	c.conn.Close()
	c.stop()
	c.ended.Wait()
}

// Run asks for the domain's state.
func (c *client) Run(ctx context.Context, uuid string) (guest.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { c.conn.Close() })()
	id, err := parseUUID(uuid)
	if err != nil {
		return guest.RunUnknown, nil //nolint:nilerr // the daemon has no domain with this UUID
	}
	d, err := c.rpc.DomainLookupByUUID(id)
	if err == nil {
		var state, reason int32
		if state, reason, err = c.rpc.DomainGetState(d, 0); err == nil {
			return runByState(state, reason), nil
		}
	}
	if libvirt.IsNotFound(err) {
		return guest.RunUnknown, nil
	}
	return guest.RunUnknown, fmt.Errorf("ask libvirt for domain %s: %w", uuid, err)
}

// XML asks for the domain's present description, without its secrets.
func (c *client) XML(ctx context.Context, uuid string) (text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { c.conn.Close() })()
	id, err := parseUUID(uuid)
	if err != nil {
		return "", nil //nolint:nilerr // the daemon has no domain with this UUID
	}
	d, err := c.rpc.DomainLookupByUUID(id)
	if err == nil {
		text, err = c.rpc.DomainGetXMLDesc(d, 0)
	}
	if err != nil && !libvirt.IsNotFound(err) {
		return "", fmt.Errorf("ask libvirt for the devices of domain %s: %w", uuid, err)
	}
	return text, nil
}

// runByEvent returns where a domain runs after an event. It is RunUnknown for an event that does not show this: a
// domain that was started to receive a migration does not run here yet, and after a failed post-copy migration its
// memory is on both hosts.
func runByEvent(event, detail int32) guest.Run {
	switch libvirt.DomainEventType(event) {
	case libvirt.DomainEventSuspended:
		switch libvirt.DomainEventSuspendedDetailType(detail) {
		case libvirt.DomainEventSuspendedMigrated, libvirt.DomainEventSuspendedPostcopy:
			return guest.RunLeft
		case libvirt.DomainEventSuspendedPostcopyFailed:
			return guest.RunUnknown
		}
		return guest.RunHere
	case libvirt.DomainEventResumed:
		return guest.RunHere
	case libvirt.DomainEventStarted:
		if libvirt.DomainEventStartedDetailType(detail) != libvirt.DomainEventStartedMigrated {
			return guest.RunHere
		}
	case libvirt.DomainEventStopped:
		if libvirt.DomainEventStoppedDetailType(detail) == libvirt.DomainEventStoppedMigrated {
			return guest.RunLeft
		}
	}
	return guest.RunUnknown
}

// runByState returns where a domain in that state runs. A domain that is paused for a migration has left or is about to
// arrive; a port that already waits for it continues to wait.
func runByState(state, reason int32) guest.Run {
	switch libvirt.DomainState(state) {
	case libvirt.DomainRunning, libvirt.DomainBlocked:
		return guest.RunHere
	case libvirt.DomainPaused:
		switch libvirt.DomainPausedReason(reason) {
		case libvirt.DomainPausedMigration, libvirt.DomainPausedPostcopy:
			return guest.RunLeft
		case libvirt.DomainPausedUnknown, libvirt.DomainPausedStartingUp, libvirt.DomainPausedPostcopyFailed:
			return guest.RunUnknown
		}
		return guest.RunHere
	}
	return guest.RunUnknown
}

func uuidText(u libvirt.UUID) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

func parseUUID(text string) (u libvirt.UUID, err error) {
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err == nil && len(b) != len(u) {
		err = fmt.Errorf("%d bytes are no UUID", len(b))
	}
	copy(u[:], b)
	return u, err
}

// maxMessage limits a message of the daemon, in bytes: the messages used here have a few hundred.
const maxMessage = 1 << 20

// headBytes is the length of a message's header in bytes: its length field and six more numbers.
const headBytes = 28

// framed is a connection that limits the length of messages, because the library allocates as much as a message claims
// to have. It is also the library's dialer, for this one connection.
type framed struct {
	net.Conn
	head []byte // the part of the next message's length that was read
	left int    // unread bytes of the present message
	gone chan struct{}
	once sync.Once
}

var errLength = errors.New("a message of an impossible length")

func (f *framed) Dial() (net.Conn, error) { return f, nil }

func (f *framed) Close() error {
	err := f.Conn.Close()
	f.once.Do(func() { close(f.gone) })
	return err
}

// Read reads at most to the end of a message or of its length field.
func (f *framed) Read(b []byte) (int, error) {
	most := f.left
	if most == 0 {
		most = 4 - len(f.head)
	}
	n, err := f.Conn.Read(b[:min(len(b), most)])
	if err == nil {
		err = f.took(b[:n])
	}
	if err != nil {
		f.Close()
	}
	return n, err
}

func (f *framed) took(b []byte) error {
	if f.left > 0 {
		f.left -= len(b)
		return nil
	}
	if f.head = append(f.head, b...); len(f.head) < 4 {
		return nil
	}
	length := binary.BigEndian.Uint32(f.head)
	f.head = f.head[:0]
	if length < headBytes || length > maxMessage {
		return errLength
	}
	f.left = int(length) - 4
	return nil
}
