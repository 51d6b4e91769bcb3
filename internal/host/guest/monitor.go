package guest

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"heddle/internal/host/qmp"
	"heddle/internal/plan/problem"
)

// Times of the QEMU monitors.
const (
	// monitorTimeout is how long a monitor may take to answer.
	monitorTimeout = 5 * time.Second
	// If there is no monitor, monitorRetry is the time until the next attempt; it grows up to monitorRetryMax.
	monitorRetry    = 100 * time.Millisecond
	monitorRetryMax = 5 * time.Second
	// monitorPause is the shortest time between two reads of a guest's filters, however often it changes them.
	monitorPause = 100 * time.Millisecond
	// monitorRefresh limits how long a change that QEMU does not report can go unnoticed: a driver that released
	// its card.
	monitorRefresh = time.Minute
	// lackedRetry is the time until the adapters are read again where one that a port has is not among them: a manager
	// may connect a port before it plugs the adapter in, of which QEMU says nothing until the guest uses it. The time
	// doubles up to monitorRefresh.
	lackedRetry = 250 * time.Millisecond
	// monitorPoll is how often a QEMU is asked whether its guest runs, while a migration may end without an event.
	monitorPoll = time.Second
	// reportPause is the shortest time between two reports to the agent's loop about all monitors.
	reportPause = 20 * time.Millisecond
	// hurryPause is the shortest time between two immediate reports to the loop that a monitor's guest runs, or
	// does not.
	hurryPause = 100 * time.Millisecond
)

// Sight is what one monitor showed of its guest and of the guest's adapters.
type Sight struct {
	// Run is where the guest runs.
	Run     Run
	seen    bool
	filters []qmp.RxFilter
	why     problem.Code // why nothing is seen; "" before the first attempt has ended
}

func (s Sight) equal(o Sight) bool {
	return s.Run == o.Run && s.seen == o.seen && s.why == o.why && slices.Equal(s.filters, o.filters)
}

// Monitors watches the QEMU monitors of running guests. A monitor serves one client at a time, so a guest's ports share
// a connection.
type Monitors struct {
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
	tell   func(context.Context, map[string]Sight) // passes news to the loop
	wake   chan struct{}                           // signals that news is not empty
	hurry  chan struct{}                           // signals news that must not wait

	mu      sync.Mutex
	running map[string]*watch // by socket
	news    map[string]Sight
}

// watch is the state of one monitor.
type watch struct {
	socket  string
	stop    context.CancelFunc
	changed chan struct{}
	again   chan struct{} // requests that QEMU is asked anew where its guest runs, and the answer reported in any case

	served served

	// mu is taken before Monitors.mu.
	mu      sync.Mutex
	sight   Sight     // what was last found
	hurried time.Time // when the loop last got an immediate report
}

// look requests another reading of the adapters.
func (w *watch) look() { signal(w.changed) }

// Watch starts with nothing to watch. tell is called with what changed, by the monitor's socket; an empty Sight means
// that the monitor is no longer watched. It is called from one goroutine and may block until its context ends.
func Watch(tell func(context.Context, map[string]Sight)) *Monitors {
	m := &Monitors{tell: tell, wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		running: map[string]*watch{}, news: map[string]Sight{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.all.Go(m.passOn)
	return m
}

// Close stops watching and waits for the goroutines.
func (m *Monitors) Close() error {
	m.cancel()
	m.all.Wait()
	return nil
}

// Want sets which monitors to watch: the adapters of the ports that each serves, by its socket. An adapter is named by
// its id in QEMU, "" for the guest's only one.
func (m *Monitors) Want(wanted map[string][]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for socket, w := range m.running {
		if len(wanted[socket]) == 0 {
			w.stop()
			delete(m.running, socket)
			m.report(w, Sight{})
		}
	}
	for socket, nics := range wanted {
		w := m.running[socket]
		if w == nil {
			w = m.start(socket)
		}
		if w.served.become(slices.Sorted(slices.Values(nics))) {
			w.look()
		}
	}
}

// Again has a QEMU asked where its guest runs, and the answer told even if it is as before. The answer is one to a
// question that follows this call.
func (m *Monitors) Again(socket string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.running[socket]; w != nil {
		signal(w.again)
	}
}

func (m *Monitors) start(socket string) *watch {
	ctx, stop := context.WithCancel(m.ctx)
	w := &watch{socket: socket, stop: stop, changed: make(chan struct{}, 1), again: make(chan struct{}, 1)}
	m.running[socket] = w
	m.all.Go(func() { m.follow(ctx, w) })
	return w
}

// report queues what a watch found. The caller holds the lock.
func (m *Monitors) report(w *watch, s Sight) {
	m.news[w.socket] = s
	signal(m.wake)
}

// found records what a watch found and reports it if it changed or was asked for, unless the watch has been stopped
// meanwhile. Where the guest runs is reported at once.
func (m *Monitors) found(w *watch, asked bool, edit func(*Sight)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.sight
	edit(&w.sight)
	if !asked && w.sight.equal(before) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running[w.socket] != w {
		return
	}
	m.report(w, w.sight)
	if now := time.Now(); (asked || w.sight.Run != before.Run) && now.Sub(w.hurried) >= hurryPause {
		w.hurried = now
		signal(m.hurry)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// passOn passes the news to the loop, at a limited rate whatever the guests do.
func (m *Monitors) passOn() {
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-m.wake:
		}
		m.mu.Lock()
		news := m.news
		m.news = map[string]Sight{}
		m.mu.Unlock()
		m.tell(m.ctx, news)
		select {
		case <-m.ctx.Done():
			return
		case <-m.hurry:
		case <-time.After(reportPause):
		}
	}
}

// pause waits; false when ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// follow keeps a monitor connected and reports its guest and adapters until ctx ends.
func (m *Monitors) follow(ctx context.Context, w *watch) {
	delay, session := monitorRetry, w.session
	if shared(w.socket) {
		session = w.visits
	}
	for {
		began := time.Now()
		served, err := session(ctx, func(asked bool, edit func(*Sight)) { m.found(w, asked, edit) })
		if ctx.Err() != nil {
			return
		}
		m.found(w, false, func(s *Sight) { *s = Sight{why: whyNot(err)} })
		var wait time.Duration
		if wait, delay = nextTry(delay, served, time.Since(began)); !pause(ctx, wait) {
			return
		}
	}
}

// nextTry returns after what time to try a monitor again whose session has ended, and the delay for the attempt after
// that. After a long session the wait is 0; a monitor that ends every session soon, as a hostile one may, is tried less
// and less often.
func nextTry(delay time.Duration, served bool, lasted time.Duration) (wait, next time.Duration) {
	if served && lasted >= monitorRetryMax {
		delay = monitorRetry
	}
	return delay, min(2*delay, monitorRetryMax)
}

// shows takes what a session has found; asked: it is reported also where nothing changed.
type shows func(asked bool, edit func(*Sight))

// session keeps one connection: it reports where the guest runs, and the adapters' filters whenever they may have
// changed. served reports whether it ever showed the filters.
func (w *watch) session(ctx context.Context, show shows) (served bool, err error) {
	opening, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	r := &runs{tell: func(now Run, asked bool) { show(asked, func(s *Sight) { s.Run = now }) }}
	ask := make(chan struct{}, 1)
	c, err := qmp.Dial(opening, w.socket, func(e qmp.Event) {
		if r.event(e) {
			signal(ask)
		}
		switch e.Name {
		case qmp.RxFilterChanged, "RESET", "DEVICE_DELETED",
			qmp.Resume: // a guest that has arrived brings its filters along
			w.look()
		}
	})
	if err != nil {
		return false, err
	}
	defer c.Close()
	asking, stop := context.WithCancel(ctx)
	var runs sync.WaitGroup
	runs.Go(func() { r.follow(asking, c, ask, w.again) })
	defer runs.Wait()
	defer stop()
	return w.filters(ctx, c, show)
}

// follow asks where the guest runs: now, after every event that may have changed it, and regularly while it may change
// without an event. An answer after again is told in any case.
func (r *runs) follow(ctx context.Context, c *qmp.Client, ask, again <-chan struct{}) {
	poll := time.NewTicker(monitorPoll)
	defer poll.Stop()
	timed := func(f func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
		defer cancel()
		return f(ctx)
	}
	// QEMU refuses this while a migration runs, and if it has no such events: then only the answers count.
	_ = timed(c.MigrationEvents)
	for answered := false; ; {
		if err := timed(func(ctx context.Context) error { return r.ask(ctx, c) }); err == nil {
			answered = true
		}
		for now := false; !now; {
			select {
			case <-ctx.Done():
				return
			case <-c.Done():
				return
			case <-again:
				r.doubt()
				now = true
			case <-ask:
				now = true
			case <-poll.C:
				now = !answered || r.moving()
			}
		}
	}
}

// whyNot returns what is wrong with a monitor. It never contains text that the monitor sent.
func whyNot(err error) problem.Code {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return problem.MonitorMissing
	case errors.Is(err, syscall.ECONNREFUSED):
		return problem.MonitorUnserved
	case errors.Is(err, os.ErrPermission):
		return problem.MonitorForbidden
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return problem.MonitorSilent
	case errors.Is(err, qmp.ErrFlood):
		return problem.MonitorFlood
	case errors.Is(err, qmp.ErrClosed):
		return problem.MonitorClosed
	}
	return problem.MonitorUnreadable
}
