package domains

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/digitalocean/go-libvirt"

	"heddle/internal/host/guest"
)

const (
	vm1 = "11111111-2222-3333-4444-555555555555"
	vm2 = "99999999-2222-3333-4444-555555555555"
)

// fakeDaemon is a libvirt whose answers the test provides.
type fakeDaemon struct {
	events  chan happened
	asked   chan string // the domain that is asked for
	answers chan guest.Run
	closed  chan struct{}
}

func newFakeDaemon() *fakeDaemon {
	return &fakeDaemon{make(chan happened), make(chan string), make(chan guest.Run), make(chan struct{}, 8)}
}

func (f *fakeDaemon) Events() <-chan happened { return f.events }
func (f *fakeDaemon) Close()                  { f.closed <- struct{}{} }

func (f *fakeDaemon) XML(_ context.Context, uuid string) (string, error) {
	return "<domain " + uuid + ">", nil
}

func (f *fakeDaemon) Run(ctx context.Context, uuid string) (guest.Run, error) {
	select {
	case f.asked <- uuid:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	select {
	case run := <-f.answers:
		return run, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// rig follows domains of daemons that the test gives.
type rig struct {
	*Domains
	t       *testing.T
	daemons chan *fakeDaemon
	news    chan map[string]guest.Run
	plugged chan string
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, daemons: make(chan *fakeDaemon), news: make(chan map[string]guest.Run),
		plugged: make(chan string)}
	r.Domains = watch(func(ctx context.Context) (daemon, error) {
		select {
		case d := <-r.daemons:
			if d == nil {
				return nil, errors.New("no daemon")
			}
			return d, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, func(ctx context.Context, news map[string]guest.Run) {
		select {
		case r.news <- news:
		case <-ctx.Done():
		}
	}, func(ctx context.Context, xml string) {
		select {
		case r.plugged <- xml:
		case <-ctx.Done():
		}
	})
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// expect waits for news of one domain.
func (r *rig) expect(uuid string, run guest.Run) {
	r.t.Helper()
	if got := <-r.news; len(got) != 1 || got[uuid] != run {
		r.t.Errorf("news %v, want %s: %v", got, uuid, run)
	}
}

// answer waits until a domain is asked for, and answers.
func (f *fakeDaemon) answer(t *testing.T, uuid string, run guest.Run) {
	t.Helper()
	if got := <-f.asked; got != uuid {
		t.Errorf("asked for %s, want %s", got, uuid)
	}
	f.answers <- run
}

func TestADaemonIsFollowedAndItsSuccessorAsked(t *testing.T) {
	r := newRig(t)
	r.Want(map[string]bool{vm1: true}, nil)
	r.daemons <- nil // no daemon there yet
	first := newFakeDaemon()
	r.daemons <- first
	first.answer(t, vm1, guest.RunHere)
	r.expect(vm1, guest.RunHere)
	first.events <- happened{uuid: vm2, run: guest.RunLeft} // an event of a domain that nobody follows
	first.events <- happened{uuid: vm1, run: guest.RunLeft}
	r.expect(vm1, guest.RunLeft)
	close(first.events) // libvirtd is restarted
	second := newFakeDaemon()
	r.daemons <- second
	<-first.closed
	second.answer(t, vm1, guest.RunHere) // the migration was cancelled meanwhile
	r.expect(vm1, guest.RunHere)
	r.Want(map[string]bool{vm1: true, vm2: true}, nil)
	second.answer(t, vm2, guest.RunUnknown)
	second.events <- happened{uuid: vm2, run: guest.RunHere}
	r.expect(vm2, guest.RunHere)
	r.Want(nil, nil)
	<-second.closed // while nothing is wanted no connection is open
}

// What is plugged into a followed domain is told with the domain's present description.
func TestAPluggedDeviceIsTold(t *testing.T) {
	r := newRig(t)
	r.Want(map[string]bool{vm1: true}, nil)
	d := newFakeDaemon()
	r.daemons <- d
	d.answer(t, vm1, guest.RunHere)
	r.expect(vm1, guest.RunHere)
	d.events <- happened{uuid: vm2, devices: true} // nobody follows it
	d.events <- happened{uuid: vm1, devices: true}
	if got, want := <-r.plugged, "<domain "+vm1+">"; got != want {
		t.Errorf("told of %s, want %s", got, want)
	}
	d.events <- happened{uuid: vm1, run: guest.RunLeft} // what the event does not say is not lost with it
	r.expect(vm1, guest.RunLeft)
}

// A domain whose ports await it is described once it runs: at once, or when it starts. One that does not run has
// nothing to describe.
func TestS148_ADomainThatIsAwaitedIsToldOnceItRuns(t *testing.T) {
	r := newRig(t)
	both := map[string]bool{vm1: true, vm2: true}
	r.Want(both, both)
	d := newFakeDaemon()
	r.daemons <- d
	runs := map[string]guest.Run{vm1: guest.RunHere, vm2: guest.RunUnknown}
	for range runs {
		uuid := <-d.asked
		d.answers <- runs[uuid]
	}
	told := func(uuid string) {
		t.Helper()
		for done := 0; done < 2; done++ {
			select {
			case got := <-r.plugged:
				if got != "<domain "+uuid+">" {
					t.Errorf("told of %s, want %s", got, uuid)
				}
			case news := <-r.news:
				if news[uuid] != guest.RunHere {
					t.Errorf("news %v, want %s", news, uuid)
				}
			}
		}
	}
	told(vm1)
	d.events <- happened{uuid: vm2, run: guest.RunHere}
	told(vm2)
	r.Want(both, map[string]bool{})
	r.Want(both, map[string]bool{vm1: true}) // its port has lost its device
	if got := <-r.plugged; got != "<domain "+vm1+">" {
		t.Errorf("told of %s", got)
	}
}

// An answer that is older than an event is not used.
func TestAnEventGoesBeforeALateAnswer(t *testing.T) {
	r := newRig(t)
	r.Want(map[string]bool{vm1: true, vm2: true}, nil)
	d := newFakeDaemon()
	r.daemons <- d
	if got := <-d.asked; got != vm1 {
		t.Fatalf("asked for %s", got)
	}
	d.events <- happened{uuid: vm1, run: guest.RunLeft} // even while the daemon does not answer
	r.expect(vm1, guest.RunLeft)
	d.answers <- guest.RunHere
	d.answer(t, vm2, guest.RunHere)
	r.expect(vm2, guest.RunHere)
}

func TestWhatIsSaidOfADomain(t *testing.T) {
	for _, c := range []struct {
		event, detail int32
		want          guest.Run
	}{
		{int32(libvirt.DomainEventSuspended), int32(libvirt.DomainEventSuspendedMigrated), guest.RunLeft},
		{int32(libvirt.DomainEventSuspended), int32(libvirt.DomainEventSuspendedPostcopy), guest.RunLeft},
		{int32(libvirt.DomainEventSuspended), int32(libvirt.DomainEventSuspendedPostcopyFailed), guest.RunUnknown},
		{int32(libvirt.DomainEventSuspended), int32(libvirt.DomainEventSuspendedPaused), guest.RunHere},
		{int32(libvirt.DomainEventSuspended), int32(libvirt.DomainEventSuspendedIoerror), guest.RunHere},
		{int32(libvirt.DomainEventResumed), int32(libvirt.DomainEventResumedMigrated), guest.RunHere},
		{int32(libvirt.DomainEventResumed), int32(libvirt.DomainEventResumedUnpaused), guest.RunHere},
		{int32(libvirt.DomainEventStarted), int32(libvirt.DomainEventStartedBooted), guest.RunHere},
		{int32(libvirt.DomainEventStarted), int32(libvirt.DomainEventStartedMigrated), guest.RunUnknown},
		{int32(libvirt.DomainEventStopped), int32(libvirt.DomainEventStoppedMigrated), guest.RunLeft},
		{int32(libvirt.DomainEventStopped), int32(libvirt.DomainEventStoppedShutdown), guest.RunUnknown},
		{int32(libvirt.DomainEventDefined), 0, guest.RunUnknown},
	} {
		if got := runByEvent(c.event, c.detail); got != c.want {
			t.Errorf("event %d, detail %d: %v, want %v", c.event, c.detail, got, c.want)
		}
	}
	for _, c := range []struct {
		state, reason int32
		want          guest.Run
	}{
		{int32(libvirt.DomainRunning), int32(libvirt.DomainRunningBooted), guest.RunHere},
		{int32(libvirt.DomainPaused), int32(libvirt.DomainPausedUser), guest.RunHere},
		{int32(libvirt.DomainPaused), int32(libvirt.DomainPausedMigration), guest.RunLeft},
		{int32(libvirt.DomainPaused), int32(libvirt.DomainPausedPostcopy), guest.RunLeft},
		{int32(libvirt.DomainPaused), int32(libvirt.DomainPausedStartingUp), guest.RunUnknown},
		{int32(libvirt.DomainShutoff), 0, guest.RunUnknown},
	} {
		if got := runByState(c.state, c.reason); got != c.want {
			t.Errorf("state %d, reason %d: %v, want %v", c.state, c.reason, got, c.want)
		}
	}
}

func TestUUIDs(t *testing.T) {
	u, err := parseUUID(vm1)
	if err != nil || uuidText(u) != vm1 {
		t.Errorf("%s %v", uuidText(u), err)
	}
	if _, err := parseUUID("11111111"); err == nil {
		t.Error("a short one is taken")
	}
}

// A message whose length field is larger than any expected message, or smaller than its own header, ends the
// connection; no memory is allocated for it.
func TestMessagesHaveABoundedLength(t *testing.T) {
	for length, good := range map[uint32]bool{headBytes: true, 100: true, maxMessage + 1: false, 1<<32 - 1: false,
		headBytes - 1: false, 0: false} {
		ours, theirs := net.Pipe()
		f := &framed{Conn: ours, gone: make(chan struct{})}
		go func() {
			message := binary.BigEndian.AppendUint32(nil, length)
			for range 2 { // the second begins where the first ends
				for _, b := range append(message, make([]byte, min(length, 100)-min(length, 4))...) {
					if _, err := theirs.Write([]byte{b}); err != nil {
						return
					}
				}
			}
			theirs.Close()
		}()
		got, err := io.ReadAll(f)
		switch {
		case good && (err != nil || len(got) != int(2*length)):
			t.Errorf("length %d: %d bytes, %v", length, len(got), err)
		case !good && !errors.Is(err, errLength):
			t.Errorf("length %d: %d bytes, %v", length, len(got), err)
		}
		<-f.gone
	}
}

// A daemon that accepts a connection and then sends nothing does not block anybody.
func TestADaemonThatSaysNothingIsLeft(t *testing.T) {
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := open(ctx, ours)
		ended <- err
	}()
	if _, err := io.ReadFull(theirs, make([]byte, headBytes)); err != nil { // the client's first request
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("it was opened")
	}
}
