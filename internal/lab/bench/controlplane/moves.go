package controlplane

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
	"heddle/internal/lab/report"
)

// moveLoad is what was measured of VMs that move from host to host at a steady rate.
type moveLoad struct {
	moves   int
	seconds float64 // from the first to the last
	// delays are how long after the target's report of each move the controller said that the port is there.
	delays []float64
	used   work
}

// guest is a VM whose port moves. It does not change: a change makes another one.
type guest struct {
	vm, name   string
	waits      bool
	generation uint64
	said       *time.Time // when it was reported first; set once, with the host's lock
}

// port is the guest's port as its host reports it.
func (g *guest) port() *controllerv1.HostPort {
	state := "up"
	if g.waits {
		state = "waiting"
	}
	return &controllerv1.HostPort{Switch: "dvs", PortGroup: groupName(0), Name: g.name, State: state, Vm: g.vm,
		Adapter: "net0", Waits: g.waits, Generation: g.generation, Since: timestamppb.New(time.Unix(1_700_000_000, 0))}
}

// keeps makes a guest's port on the host what it is now, and has it reported.
func (h *host) keeps(g guest) {
	g.said = &time.Time{}
	h.mu.Lock()
	if h.guests == nil {
		h.guests = map[string]*guest{}
	}
	h.guests[g.vm] = &g
	h.mu.Unlock()
	h.client.Changed()
}

// loses takes the port away.
func (h *host) loses(vm string) {
	h.mu.Lock()
	delete(h.guests, vm)
	h.mu.Unlock()
	h.client.Changed()
}

// says waits until the host has made a report with the port as it is now, and returns when that was.
func (h *host) says(ctx context.Context, vm string) (time.Time, error) {
	for began := time.Now(); time.Since(began) < patience; {
		h.mu.Lock()
		at := *h.guests[vm].said
		h.mu.Unlock()
		if !at.IsZero() {
			return at, nil
		}
		if !sleepUntil(ctx, time.Now().Add(time.Millisecond)) {
			return time.Time{}, ctx.Err()
		}
	}
	return time.Time{}, fmt.Errorf("%s does not report the port of VM %s", h.name(), vm)
}

// reportGuests adds the ports that move to a report. The caller holds the lock.
func (h *host) reportGuests(r *controllerv1.HostReport) {
	for _, g := range h.guests {
		if g.said.IsZero() {
			*g.said = time.Now()
		}
		r.Ports = append(r.Ports, g.port())
	}
}

// mover is a VM, and where it is.
type mover struct {
	vm, name   string
	on         int // the host's number
	generation uint64
	free       chan struct{} // holds one token while it does not move
}

// moving lets VMs move at a steady rate, each move at its time whether or not those before have come to an end.
func (m *measurement) moving(ctx context.Context) error {
	all := make([]*mover, max(len(m.crowd.hosts), 5*m.Moves))
	for i := range all {
		v := &mover{vm: fmt.Sprintf("6f9619ff-8b86-4012-b42d-%012x", i), name: fmt.Sprintf("mover%d/eth0", i),
			on: i % len(m.crowd.hosts), generation: 1, free: make(chan struct{}, 1)}
		v.free <- struct{}{}
		m.crowd.hosts[v.on].keeps(guest{vm: v.vm, name: v.name, generation: v.generation})
		all[i] = v
	}
	for _, v := range all {
		if _, err := m.crowd.hosts[v.on].says(ctx, v.vm); err != nil {
			return err
		}
		if _, err := m.located(ctx, v.vm, m.crowd.hosts[v.on].name()); err != nil {
			return err
		}
	}
	out := &moveLoad{moves: max(1, int(float64(m.Moves)*m.Moving.Seconds()))}
	out.delays = make([]float64, out.moves)
	before, err := m.begin()
	if err != nil {
		return err
	}
	began := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	for i := range out.moves {
		if !sleepUntil(gctx, began.Add(time.Duration(i)*time.Second/time.Duration(m.Moves))) {
			break
		}
		v := all[i%len(all)]
		g.Go(func() (err error) {
			out.delays[i], err = m.move(gctx, v)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	out.seconds = time.Since(began).Seconds()
	after, err := m.process.working()
	if err != nil {
		return err
	}
	out.used = after.since(before)
	m.moves = out
	if m.memory, m.mostMemory, err = m.process.memory(); err != nil {
		return err
	}
	return m.crowd.unmarked()
}

// move moves a VM to the next host, and says how long after the target's report the controller knew it, in seconds.
func (m *measurement) move(ctx context.Context, v *mover) (float64, error) {
	select {
	case <-v.free:
		defer func() { v.free <- struct{}{} }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	from, next := m.crowd.hosts[v.on], (v.on+1)%len(m.crowd.hosts)
	to := m.crowd.hosts[next]
	to.keeps(guest{vm: v.vm, name: v.name, waits: true, generation: v.generation - 1})
	if _, err := to.says(ctx, v.vm); err != nil {
		return 0, err
	}
	from.keeps(guest{vm: v.vm, name: v.name, waits: true, generation: v.generation})
	v.generation++
	to.keeps(guest{vm: v.vm, name: v.name, generation: v.generation})
	said, err := to.says(ctx, v.vm)
	if err != nil {
		return 0, err
	}
	known, err := m.located(ctx, v.vm, to.name())
	if err != nil {
		return 0, err
	}
	if v.on = next; from != to {
		from.loses(v.vm)
	}
	return known.Sub(said).Seconds(), nil
}

// located waits until the controller says that a VM's port is on a host, and returns when it said so.
func (m *measurement) located(ctx context.Context, vm, host string) (time.Time, error) {
	for began := time.Now(); ; {
		list, err := m.process.LocatePorts(ctx, api.LocateQuery{VM: vm, Adapter: "net0"})
		switch {
		case err != nil:
			return time.Time{}, err
		case len(list.Ports) == 1 && list.Ports[0].Host == host:
			return time.Now(), nil
		case time.Since(began) > patience:
			return time.Time{}, fmt.Errorf("the controller does not say that VM %s is on %s: %+v", vm, host, list.Ports)
		}
		if !sleepUntil(ctx, time.Now().Add(poll)) {
			return time.Time{}, ctx.Err()
		}
	}
}

// unmarked makes sure that no host was told of a conflict.
func (c *crowd) unmarked() error {
	for _, h := range c.hosts {
		h.mu.Lock()
		n := h.conflicts
		h.mu.Unlock()
		if n > 0 {
			return fmt.Errorf("%s was told of %d conflicts, and every VM runs on one host alone", h.name(), n)
		}
	}
	return nil
}

func (c *moveLoad) row(hosts int) report.Row {
	moves := float64(c.moves)
	return report.Row{{Name: "hosts", Value: hosts}, {Name: "work", Value: portsMoved},
		{Name: "moves", Value: c.moves, Unit: report.Count},
		{Name: "rate", Value: moves / c.seconds, Unit: report.PerSecond},
		{Name: "p50", Value: percentile(c.delays, 0.5), Unit: report.Seconds},
		{Name: "p99", Value: percentile(c.delays, 0.99), Unit: report.Seconds},
		{Name: "max", Value: percentile(c.delays, 1), Unit: report.Seconds},
		{Name: "cpu_controller_move", Title: "CPU/move: controller", Value: c.used.controller / moves,
			Unit: report.Seconds},
		{Name: "cpu_agents_move", Title: "CPU/move: hosts", Value: c.used.agents / moves, Unit: report.Seconds},
		{Name: "core", Title: "controller, of a core", Value: 100 * c.used.controller / c.seconds,
			Unit: report.Percent}}
}
