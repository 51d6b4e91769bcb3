package migration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"heddle/internal/lab/traffic"
)

const (
	// lead is how long everything runs before the guest stops, tail for how long it does after the guest runs again.
	lead = 300 * time.Millisecond
	tail = 700 * time.Millisecond
	// stillFor is how long the guest stands still at least, as it does for the last pages of its memory.
	stillFor = 10 * time.Millisecond
	// pingRate is the number of pings a second.
	pingRate = 100
)

// measured is the result of one row.
type measured struct {
	row   row
	moves []move
	// broken connections of the crowd by the end.
	broken int64
	// copies is how many moves had a copy of the port at the target before the guest stopped.
	copies int
	// differ is how many frames the port's counters show less or more than the guest has sent and got, by the end; has
	// says that the hosts show counters.
	differ uint64
	has    bool
	before map[string]uint64
	// effort is that of the row, where it has its own; repeated is how many guests failed.
	effort   effort
	repeated int
	after    map[string]uint64
}

// move is the result of one move.
type move struct {
	out, in     traffic.Received
	overflowed  uint64
	duplicated  uint64 // packets and pings
	early, late uint64 // frames delivered to the guest's device at the target before it ran there, at the source after
	// strayEarly are frames of the guest's MAC that the target sent into the network before the guest ran there,
	// strayLate those that the source sent after the guest had stopped there.
	strayEarly, strayLate uint64
	stood                 uint64 // frames that the guest's stack sent while it stood still
	unanswered            uint64 // pings
	bulk                  float64
	resent, timeouts      uint64 // of the bulk transfer's sender
	times                 times
	copied                bool // the target had a copy of the port before the guest stopped
	// downtime is for how long QEMU says that it stopped the guest.
	downtime time.Duration
	// beyondOut and beyondIn are how much longer than that packets from and to it stood still, in seconds.
	beyondOut, beyondIn float64
	// ownOut is beyondOut at the guest's taps: the part that is the guest's own.
	ownOut float64
	// rarpAfter is how long after the guest ran the target announced its MAC first, in seconds, NaN for never; rarps is
	// how often it did until the move was measured.
	rarpAfter float64
	rarps     uint64
}

// times are when the steps of a move were done.
type times struct {
	began, prepared, stopped, silent, runs, arrived, released time.Time
}

// hosts are the taps of one host: what it delivers to the guest's device, and what it sends into the network.
type hosts struct {
	device  string
	deliver *tap
	wire    *tap
	// ear hears the announcements that the host sends into the network.
	ear *ear
}

// series are the moves of a row.
type series struct {
	s     *scene
	site  site
	m     *measured
	net   network
	at    int // the host where the guest runs
	sides [3]hosts
	// deliver are all taps towards the guest that the row has had.
	delivers []*tap
	own      counts // when the row began
	crowd    *crowd
}

// measure makes the moves of a row.
func (s *scene) measure(ctx context.Context, o Options, r row) (_ *measured, err error) {
	q := &series{s: s, site: heddleSite{s: s, overlay: r.overlay}, m: &measured{row: r}, at: 1,
		net: r.network()}
	if r.bridge {
		q.site = bridgeSite{s}
	}
	o.say(r.name + ": connecting the guest")
	if err := q.begin(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.end(ctx)) }()
	if q.crowd, err = openCrowd(ctx, s.nodes[guest], s.nodes[q.net.far], s.effort.connections); err != nil {
		return nil, err
	}
	defer q.crowd.close()
	for n := range s.effort.moves {
		o.say(fmt.Sprintf("%s, move %d of %d", r.name, n+1, s.effort.moves))
		if err := q.move(ctx); err != nil {
			return nil, fmt.Errorf("move %d: %w", n+1, err)
		}
	}
	return q.m, nil
}

// begin connects the guest where the row begins.
func (q *series) begin(ctx context.Context) (err error) {
	for host := 1; host <= 2; host++ {
		node := q.site.node(host)
		if q.sides[host].wire, _, err = q.s.valve.attach(q.s.nodes[q.net.wires], node, q.s.valve.onWire(host,
			q.s.mac, q.net.head)); err != nil {
			return err
		}
		if q.sides[host].ear, err = listenFor(q.s.nodes[q.net.wires], node, q.s.mac, q.net.head,
			q.net.rarps()); err != nil {
			return err
		}
	}
	if err := q.plug(q.at); err != nil {
		return err
	}
	if q.own, err = q.s.own.read(); err != nil {
		return err
	}
	if err := q.site.start(ctx, q.at, q.sides[q.at].device); err != nil {
		return err
	}
	if err := q.s.valve.runs(q.at); err != nil {
		return err
	}
	if err := q.site.resumed(ctx, q.at, q.sides[q.at].device); err != nil {
		return err
	}
	return q.answers(ctx)
}

// answers pings until all requests are answered: then every switch on the way has learned where both ends are.
func (q *series) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	load := traffic.Load{Kind: traffic.KindEcho, Duration: 100 * time.Millisecond, Rate: 50}
	for {
		res, err := traffic.Send(ctx, traffic.Endpoint{NS: q.s.nodes[guest]}, load, addrPort(outsideIP, 0))
		if err == nil && res.Echo.Answered == res.Echo.Requests {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(errors.New("the guest is not answered"), err, ctx.Err())
		}
	}
}

// plug makes the guest's device on a host.
func (q *series) plug(host int) (err error) {
	q.s.moved++
	side := &q.sides[host]
	side.device = fmt.Sprintf("vm-guest%d", q.s.moved)
	side.deliver, err = q.s.plug(q.site.node(host), side.device, host)
	if err == nil {
		q.delivers = append(q.delivers, side.deliver)
	}
	return err
}

// end disconnects the guest.
func (q *series) end(ctx context.Context) (err error) {
	for _, side := range q.sides {
		if side.ear != nil {
			err = errors.Join(err, side.ear.close())
		}
	}
	return errors.Join(err, q.leaves(ctx))
}

// leaves takes the guest from where it runs.
func (q *series) leaves(ctx context.Context) error {
	if err := q.s.valve.runs(nowhere); err != nil {
		return err
	}
	if err := q.site.stopped(ctx, q.at); err != nil {
		return err
	}
	return q.site.release(ctx, q.at, q.sides[q.at].device)
}

// move moves the guest to the other host under load.
func (q *series) move(ctx context.Context) (err error) {
	one := move{bulk: math.NaN()}
	load, err := q.s.start(ctx, q.net.far)
	if err != nil {
		return err
	}
	err = q.steps(ctx, &one)
	end := time.Now()
	if err = errors.Join(err, load.finish(&one)); err != nil {
		return err
	}
	one.bulk = load.bulk.back(one.times.stopped, one.times.runs, end)
	one.resent, one.timeouts = load.bulk.resent, load.bulk.timeouts
	broken, again := q.crowd.rest()
	defer again()
	q.m.broken = broken
	if err := q.compare(ctx); err != nil {
		return err
	}
	q.m.moves = append(q.m.moves, one)
	return nil
}

// steps are those of a move, each followed by the time that it takes as long as it takes.
func (q *series) steps(ctx context.Context, one *move) error {
	one.times.began = time.Now()
	if q.m.row.still {
		if err := pause(ctx, lead); err != nil {
			return err
		}
		one.times.stopped = time.Now()
		one.times.runs = one.times.stopped
		return pause(ctx, tail)
	}
	from, to := q.at, 3-q.at
	before, err := q.wrong(from, 0)
	if err != nil {
		return err
	}
	if err := q.plug(to); err != nil {
		return err
	}
	copied, err := q.site.prepare(ctx, to, q.sides[to].device)
	if err != nil {
		return err
	}
	if copied {
		q.m.copies++
	}
	one.times.prepared = time.Now()
	if err := pause(ctx, lead); err != nil {
		return err
	}
	if err := q.hand(ctx, from, to, one); err != nil {
		return err
	}
	if err := q.site.arrived(ctx, to); err != nil {
		return err
	}
	one.times.arrived = time.Now()
	if err := pause(ctx, tail); err != nil {
		return err
	}
	after, err := q.wrong(from, to)
	if err != nil {
		return err
	}
	one.announced(q.sides[to].ear.told())
	q.sides[from].ear.told()
	one.late, one.strayLate = after.late-before.late, after.strayLate-before.strayLate
	one.strayEarly, one.early = after.strayEarly-before.strayEarly, after.early
	one.stood = after.stood - before.stood
	if err := q.site.release(ctx, from, q.sides[from].device); err != nil {
		return err
	}
	one.times.released = time.Now()
	q.at = to
	return nil
}

// hand stops the guest here and lets it go on there.
func (q *series) hand(ctx context.Context, from, to int, one *move) error {
	one.times.stopped = time.Now()
	if err := q.s.valve.runs(nowhere); err != nil {
		return err
	}
	if err := q.site.stopped(ctx, from); err != nil {
		return err
	}
	one.times.silent = time.Now()
	if err := pause(ctx, max(stillFor-time.Since(one.times.stopped), 0)); err != nil {
		return err
	}
	one.times.runs = time.Now()
	if err := q.s.valve.runs(to); err != nil {
		return err
	}
	return q.site.resumed(ctx, to, q.sides[to].device)
}

// wrong is what came at a wrong time so far: at the host that the guest leaves, and, unless it is 0, at the other.
func (q *series) wrong(from, to int) (m move, err error) {
	other := 3 - from
	for _, w := range []struct {
		tap *tap
		n   *uint64
	}{{q.sides[from].deliver, &m.late}, {q.sides[from].wire, &m.strayLate}, {q.sides[other].wire, &m.strayEarly},
		{q.s.own, &m.stood}} {
		c, err := w.tap.read()
		if err != nil {
			return m, err
		}
		*w.n = c[wrongTime]
	}
	if to == 0 {
		return m, nil
	}
	c, err := q.sides[to].deliver.read()
	m.early = c[wrongTime]
	return m, err
}

// running is the load of one move.
type running struct {
	stop    context.CancelFunc
	out, in *traffic.Sink
	sent    chan error
	senders int
	pings   traffic.Result
	bulk    *bulk
}

// start starts the load: numbered packets each way, pings and the bulk transfer.
func (s *scene) start(ctx context.Context, far string) (_ *running, err error) {
	l := &running{sent: make(chan error, 3)}
	ctx, l.stop = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, l.finish(&move{}))
		}
	}()
	for _, d := range []struct {
		sink     **traffic.Sink
		from, to string
		at       netip.AddrPort
	}{{&l.out, guest, far, addrPort(outsideIP, 0)}, {&l.in, far, guest, addrPort(guestIP, 0)}} {
		*d.sink, err = traffic.Listen(traffic.Endpoint{NS: s.nodes[d.to]},
			traffic.SinkOptions{Kind: traffic.KindUDP, At: d.at, Stamped: true})
		if err != nil {
			return l, err
		}
		l.send(func() error {
			_, err := traffic.Send(ctx, traffic.Endpoint{NS: s.nodes[d.from]},
				traffic.Load{Kind: traffic.KindUDP, Rate: s.effort.rate}, (*d.sink).Addr())
			return err
		})
	}
	l.send(func() (err error) {
		l.pings, err = traffic.Send(ctx, traffic.Endpoint{NS: s.nodes[far]},
			traffic.Load{Kind: traffic.KindEcho, Rate: pingRate}, addrPort(guestIP, 0))
		return err
	})
	l.bulk, err = startBulk(ctx, s.nodes[guest], s.nodes[far], s.effort.bulk)
	return l, err
}

func (l *running) send(f func() error) {
	l.senders++
	go func() { l.sent <- f() }()
}

// settle ends the senders and waits for them.
func (l *running) settle() error {
	var errs []error
	l.stop()
	for ; l.senders > 0; l.senders-- {
		errs = append(errs, <-l.sent)
	}
	return errors.Join(errs...)
}

// finish ends the load and adds what it found.
func (l *running) finish(one *move) error {
	errs := []error{l.settle()}
	for _, d := range []struct {
		sink *traffic.Sink
		into *traffic.Received
	}{{l.out, &one.out}, {l.in, &one.in}} {
		if d.sink == nil {
			continue
		}
		res, err := d.sink.Finish()
		if errs = append(errs, err); res.Packets != nil {
			*d.into = *res.Packets
			one.overflowed += res.Packets.Overflowed
			one.duplicated += res.Packets.Duplicated
		}
	}
	if e := l.pings.Echo; e != nil {
		one.duplicated += e.Replies - e.Answered
		one.unanswered = e.Requests - e.Answered
	}
	if l.bulk != nil {
		errs = append(errs, l.bulk.stop())
	}
	return errors.Join(errs...)
}
