package migration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"heddle/internal/api"
)

const (
	// emulated is by how much less of the load a guest gets that is emulated, processor and all.
	emulated = 20
	// mostRepeats is how many times a row begins again because the emulated guest's kernel has failed.
	mostRepeats = 5
	bootTime    = 5 * time.Minute
	moveTime    = 5 * time.Minute
)

// voyage is a real guest that goes from host to host.
type voyage struct {
	s        *scene
	site     heddleSite
	net      network
	program  string
	effort   effort
	m        *measured
	at       *machine
	failed   context.CancelCauseFunc
	wires    [3]*ear // the hosts' ports at the physical switch
	crowd    *crowd
	bulk     string // where the guest takes the bulk transfer
	broken   int64  // of the guests before
	out, in  counts // at the taps that are gone
	machines []*machine
}

// lighter is what an emulated guest can carry.
func (e effort) lighter() effort {
	e.rate, e.bulk, e.connections = e.rate/emulated, e.bulk/emulated, max(e.connections/emulated, 1)
	return e
}

// measureGuest makes the moves of the row with a real guest. One whose guest has failed is made again with another.
func (s *scene) measureGuest(ctx context.Context, o Options, r row) (*measured, error) {
	m := &measured{row: r, effort: s.effort.lighter()}
	if o.Program == "" {
		own, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program for the guest: %w", err)
		}
		o.Program = own
	}
	for {
		err := s.voyage(ctx, o, m)
		if !errors.Is(err, errGuestEnded) || m.repeated == mostRepeats {
			return m, err
		}
		m.repeated++
		o.say(fmt.Sprintf("%s: %v; once more", r.name, err))
	}
}

// voyage boots a guest and moves it until all moves of the row are made.
func (s *scene) voyage(ctx context.Context, o Options, m *measured) (err error) {
	dir, err := os.MkdirTemp("", "heddle-move-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	v := &voyage{s: s, site: heddleSite{s, dir, m.row.overlay}, net: m.row.network(), program: o.Program,
		effort: m.effort, m: m, failed: end, broken: m.broken}
	defer func() {
		if err != nil {
			err = v.endedItself(ctx, err)
		}
		err = errors.Join(err, v.end(context.WithoutCancel(ctx)))
	}()
	o.say(m.row.name + ": booting the guest")
	if err := v.begin(ctx); err != nil {
		return err
	}
	for len(m.moves) < s.effort.moves {
		o.say(fmt.Sprintf("%s, move %d of %d", m.row.name, len(m.moves)+1, s.effort.moves))
		if err := v.move(ctx); err != nil {
			return fmt.Errorf("move %d: %w", len(m.moves)+1, err)
		}
	}
	return nil
}

// begin boots the guest on the first host, connects it and starts what it serves.
func (v *voyage) begin(ctx context.Context) (err error) {
	for host := 1; host <= 2; host++ {
		if v.wires[host], err = listenFor(v.s.nodes[v.net.wires], v.site.node(host), v.s.mac,
			v.net.head, v.net.frames()); err != nil {
			return err
		}
	}
	if v.at, err = v.launch(ctx, 1, ""); err != nil {
		return err
	}
	if err := v.site.start(ctx, 1, v.at.tap); err != nil {
		return err
	}
	boot, cancel := context.WithTimeout(ctx, bootTime)
	defer cancel()
	if err := v.at.Ready(boot); err != nil {
		return err
	}
	bulk, err := v.serve(ctx, "stream", "--kind stream")
	if err != nil {
		return err
	}
	v.bulk = bulk[0]
	asked, err := v.serve(ctx, "rr", fmt.Sprintf("--kind rr --size %d --sessions %d", requestBytes,
		v.effort.connections))
	if err != nil {
		return err
	}
	v.crowd, err = callCrowd(ctx, v.s.nodes[v.net.far], asked)
	return err
}

// end ends everything.
func (v *voyage) end(ctx context.Context) error {
	if v.crowd != nil {
		v.crowd.close()
	}
	var errs []error
	for host := 1; host <= 2; host++ {
		st, err := v.site.agent(host).State(ctx)
		errs = append(errs, err)
		for i := 0; err == nil && i < len(st.Ports); i++ {
			if st.Ports[i].Name == port {
				errs = append(errs, v.site.agent(host).Disconnect(ctx, api.Disconnect{Port: port}))
			}
		}
		if v.wires[host] != nil {
			errs = append(errs, v.wires[host].close())
		}
	}
	for _, m := range v.machines {
		if m.ear != nil {
			_ = m.end() // a QEMU whose guest never arrived, or has failed, says so; the cause is told already
		}
	}
	return errors.Join(errs...)
}

// move moves the guest to the other host under load. The QEMU there runs until the voyage ends.
func (v *voyage) move(voyage context.Context) (err error) {
	ctx, cancel := context.WithTimeout(voyage, moveTime)
	defer cancel()
	one := move{bulk: math.NaN()}
	host := 3 - v.at.host
	uri := fmt.Sprintf("tcp:10.20.0.1%d:%d", host, firstPort+v.s.moved)
	to, err := v.launch(voyage, host, uri)
	if err != nil {
		return err
	}
	load, err := v.start(ctx)
	if err != nil {
		return err
	}
	from := v.at
	err = v.steps(ctx, &one, to, uri)
	end := time.Now()
	if err != nil {
		return errors.Join(err, load.running.finish(&one))
	}
	if err = load.finish(ctx, v.at, &one); err != nil {
		return err
	}
	one.bulk = load.bulk.back(one.times.stopped, one.times.runs, end)
	one.resent, one.timeouts = load.bulk.resent, load.bulk.timeouts
	v.judge(&one, from, to, end)
	broken, again := v.crowd.rest()
	defer again()
	v.m.broken = v.broken + broken
	if err := v.m.compare(ctx, v.counted, func() (map[string]uint64, error) {
		return v.site.shown(ctx, to.host)
	}); err != nil {
		return err
	}
	if err := v.leave(ctx, from, &one); err != nil {
		return err
	}
	if one.copied {
		v.m.copies++
	}
	v.m.moves = append(v.m.moves, one)
	return nil
}

// steps prepare the target, move the guest, and let everything run for a while.
func (v *voyage) steps(ctx context.Context, one *move, to *machine, uri string) error {
	one.times.began = time.Now()
	copied, err := v.site.prepare(ctx, to.host, to.tap)
	if err != nil {
		return err
	}
	one.copied = copied
	one.times.prepared = time.Now()
	if err := pause(ctx, lead); err != nil {
		return err
	}
	from := v.at
	if _, err := from.QMP(ctx, "migrate", map[string]string{"uri": uri}); err != nil {
		return err
	}
	if one.downtime, err = from.transferred(ctx); err != nil {
		return err
	}
	select {
	case <-to.again:
	case <-ctx.Done():
		return fmt.Errorf("the guest never runs where it was moved to: %w", context.Cause(ctx))
	}
	v.at = to
	from.mu.Lock()
	one.times.stopped = from.stopped
	from.mu.Unlock()
	to.mu.Lock()
	one.times.runs = to.resumed
	to.mu.Unlock()
	if err := v.site.arrived(ctx, to.host); err != nil {
		return err
	}
	one.times.arrived = time.Now()
	if one.times.silent, err = v.site.silent(ctx, from.host); err != nil {
		return err
	}
	return pause(ctx, tail)
}

// judge adds what the ears have heard.
func (v *voyage) judge(one *move, from, to *machine, end time.Time) {
	source, target := from.ear.told(), to.ear.told()
	sourceWire, targetWire := v.wires[from.host].told(), v.wires[to.host].told()
	one.misplaced(source, target, sourceWire, targetWire)
	one.announced(targetWire)
	one.beyondOut = one.beyond(sourceWire, targetWire, heard.sentByGuest)
	one.ownOut = one.beyond(source, target, heard.sentByGuest)
	one.beyondIn = one.beyond(source, target, func(h heard) bool { return h.out })
	gap, at := one.silence(source, target, one.times.prepared, end)
	one.in.LongestGap, one.in.LongestGapAt = gap.Seconds(), at.UnixNano()
}

// counted are the counters as they should be: what passed the taps of the guest.
func (v *voyage) counted() (map[string]uint64, error) {
	out, in := v.out, v.in
	for _, m := range v.machines {
		if m.ear == nil {
			continue
		}
		if n, err := m.ear.missed(); err != nil || n > 0 {
			return nil, errors.Join(fmt.Errorf("%d frames at device %s were not heard", n, m.tap), err)
		}
		received, sent := m.ear.sums()
		out, in = out.plus(received), in.plus(sent)
	}
	return v.net.numbered(named(out, in)), nil
}

// leave releases the guest's port on the host that it has left, and ends the QEMU there.
func (v *voyage) leave(ctx context.Context, from *machine, one *move) error {
	if err := v.site.agent(from.host).ReleaseMovedPort(ctx, api.PortMoveOf{Port: port}); err != nil {
		return err
	}
	one.times.released = time.Now()
	received, sent := from.ear.sums()
	v.out, v.in = v.out.plus(received), v.in.plus(sent)
	return from.end()
}
