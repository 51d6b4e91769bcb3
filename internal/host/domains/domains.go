package domains

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"heddle/internal/host/guest"
)

// Times of the connection to libvirt's daemon. They are fields of a Domains, so that tests can shorten them.
const (
	// openTimeout is how long the daemon may take to accept a connection and the registration for events.
	openTimeout = 10 * time.Second
	// answerTimeout is how long the daemon may take to report a domain's state: it does not answer while the
	// domain's hook runs.
	answerTimeout = time.Minute
	// If there is no daemon, retry is the time until the next attempt; it grows up to retryMax.
	retry    = 100 * time.Millisecond
	retryMax = 5 * time.Second
)

// Domains follows the wanted domains, in goroutines of its own. While none is wanted, no connection is open.
type Domains struct {
	open   func(context.Context) (daemon, error)
	tell   func(context.Context, map[string]guest.Run)
	plug   func(context.Context, string)
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
	turned chan struct{} // signals that other domains are wanted
	wake   chan struct{} // signals that news is not empty

	mu        sync.Mutex
	wanted    map[string]bool
	known     map[string]guest.Run // the last report of the connected daemon
	events    map[string]int       // number of events of a domain: an answer from before the last one is not used
	news      map[string]guest.Run
	replugged map[string]bool // domains of which a device was plugged or unplugged, or whose ports await them
	awaited   map[string]bool // domains whose ports await them
	xml       []string        // descriptions for plug
}

// Watch starts without domains to follow. dir is the directory of libvirt's sockets. tell is called with the domains,
// by their UUIDs, that run elsewhere than before, or about which another daemon reports. It is called from one
// goroutine and may block until its context ends. plug is called from the same goroutine, with the description (XML) of
// a domain to which a device was plugged, or from which one was unplugged.
func Watch(dir string, tell func(context.Context, map[string]guest.Run),
	plug func(context.Context, string)) *Domains {
	return watch(func(ctx context.Context) (daemon, error) { return dial(ctx, dir) }, tell, plug)
}

func watch(open func(context.Context) (daemon, error), tell func(context.Context, map[string]guest.Run),
	plug func(context.Context, string)) *Domains {
	d := &Domains{open: open, tell: tell, plug: plug, turned: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		known: map[string]guest.Run{}, events: map[string]int{}, news: map[string]guest.Run{},
		replugged: map[string]bool{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.all.Go(d.passOn)
	d.all.Go(d.follow)
	return d
}

// Close stops following and waits for the goroutines.
func (d *Domains) Close() error {
	d.cancel()
	d.all.Wait()
	return nil
}

// Want sets which domains to follow, by their UUIDs in lower case, and which of them have ports that await them: those
// that run are described once, as if a device had been plugged.
func (d *Domains) Want(wanted, awaited map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if maps.Equal(d.wanted, wanted) && maps.Equal(d.awaited, awaited) {
		return
	}
	for uuid := range awaited {
		if !d.awaited[uuid] && d.known[uuid] == guest.RunHere {
			d.replugged[uuid] = true
		}
	}
	d.wanted, d.awaited = maps.Clone(wanted), maps.Clone(awaited)
	gone := func(uuid string) bool { return !wanted[uuid] }
	maps.DeleteFunc(d.known, func(uuid string, _ guest.Run) bool { return gone(uuid) })
	maps.DeleteFunc(d.news, func(uuid string, _ guest.Run) bool { return gone(uuid) })
	maps.DeleteFunc(d.events, func(uuid string, _ int) bool { return gone(uuid) })
	maps.DeleteFunc(d.replugged, func(uuid string, _ bool) bool { return gone(uuid) })
	signal(d.turned)
}

func (d *Domains) anyWanted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.wanted) > 0
}

// Again has the daemon asked where a domain runs, and the answer told even if it is as before.
func (d *Domains) Again(uuid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wanted[uuid] {
		delete(d.known, uuid)
		d.events[uuid]++ // an answer to an earlier question is late
		signal(d.turned)
	}
}

// found records where a domain runs. If an event reports it, tell is called even if it was known: the port's state may
// have changed since.
func (d *Domains) found(uuid string, run guest.Run, byEvent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.wanted[uuid] {
		return
	}
	if byEvent {
		d.events[uuid]++
	}
	before, known := d.known[uuid]
	d.known[uuid] = run
	if run == guest.RunHere && before != run && d.awaited[uuid] {
		d.replugged[uuid] = true
		signal(d.turned)
	}
	if run == guest.RunUnknown || known && before == run && !byEvent {
		return
	}
	d.news[uuid] = run
	signal(d.wake)
}

// replug notes that the devices of a followed domain have changed.
func (d *Domains) replug(uuid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wanted[uuid] {
		d.replugged[uuid] = true
	}
}

// nextReplugged takes a domain whose devices have changed; "" if there is none.
func (d *Domains) nextReplugged() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for uuid := range d.replugged {
		delete(d.replugged, uuid)
		return uuid
	}
	return ""
}

// describe passes a domain's description on.
func (d *Domains) describe(xml string) {
	if xml == "" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.xml = append(d.xml, xml)
	signal(d.wake)
}

// forget drops the reports of a daemon whose connection has ended: what happens until the next connection is unknown.
func (d *Domains) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = map[string]guest.Run{}
}

// unknown returns a domain about which the daemon has reported nothing, and how many events of it came so far; "" if
// there is none.
func (d *Domains) unknown() (uuid string, events int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, uuid := range slices.Sorted(maps.Keys(d.wanted)) {
		if _, known := d.known[uuid]; !known {
			return uuid, d.events[uuid]
		}
	}
	return "", 0
}

// answered records the answer about a domain, unless an event has come since the question.
func (d *Domains) answered(uuid string, run guest.Run, events int) {
	d.mu.Lock()
	late := d.events[uuid] != events
	d.mu.Unlock()
	if !late {
		d.found(uuid, run, false)
	}
}

// passOn passes the news to tell.
func (d *Domains) passOn() {
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-d.wake:
		}
		d.mu.Lock()
		news, xml := d.news, d.xml
		d.news, d.xml = map[string]guest.Run{}, nil
		d.mu.Unlock()
		if len(news) > 0 {
			d.tell(d.ctx, news)
		}
		for _, x := range xml {
			d.plug(d.ctx, x)
		}
	}
}

// follow keeps a connection to the daemon while domains are wanted.
func (d *Domains) follow() {
	delay := retry
	for d.ctx.Err() == nil {
		if !d.anyWanted() {
			select {
			case <-d.ctx.Done():
			case <-d.turned:
			}
			continue
		}
		if d.session() {
			delay = retry
		}
		d.forget()
		select {
		case <-d.ctx.Done():
		case <-time.After(delay):
		}
		delay = min(2*delay, retryMax)
	}
}

// session keeps one connection, from the registration for events to its end, or until no domain is wanted. served
// reports whether there was one.
func (d *Domains) session() (served bool) {
	ctx, end := context.WithCancel(d.ctx)
	defer end()
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	c, err := d.open(opening)
	if err != nil {
		return false // there is no daemon, or it is starting or ending
	}
	var asking sync.WaitGroup
	ask := make(chan struct{}, 1)
	asking.Go(func() { d.askAll(ctx, c, ask) })
	defer asking.Wait()
	defer c.Close()
	defer end()
	signal(ask)
	for {
		select {
		case <-ctx.Done():
			return true
		case e, ok := <-c.Events():
			if !ok {
				return true
			}
			if e.devices {
				d.replug(e.uuid)
				signal(ask)
			} else {
				d.found(e.uuid, e.run, true)
			}
		case <-d.turned:
			if !d.anyWanted() {
				return true
			}
			signal(ask)
		}
	}
}

// askAll asks about the domains whose state is unknown, one at a time; events are processed meanwhile.
func (d *Domains) askAll(ctx context.Context, c daemon, ask <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ask:
		}
		for uuid, events := d.unknown(); uuid != "" && ctx.Err() == nil; uuid, events = d.unknown() {
			run, err := c.Run(ctx, uuid)
			if err != nil {
				c.Close() // the next connection asks again
				return
			}
			d.answered(uuid, run, events)
		}
		for uuid := d.nextReplugged(); uuid != "" && ctx.Err() == nil; uuid = d.nextReplugged() {
			xml, err := c.XML(ctx, uuid)
			if err != nil {
				d.replug(uuid)
				c.Close()
				return
			}
			d.describe(xml)
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
