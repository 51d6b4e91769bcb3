package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
)

// portLoad is what was measured of ports that were connected at a steady rate.
type portLoad struct {
	ports   int
	seconds float64 // from the first to the last
	// delays are how long after its time each port was active on its host.
	delays []float64
	// again is how often a host asked once more, since no controller had answered.
	again int64
	// shown is how long after the last the controller listed all of them.
	shown float64
	used  work
	// transactions of etcd, bytes that the controller wrote to its disk, and how much of the database is in use.
	transactions                int64
	written                     float64
	inUse, inUseAfter, database int64
	quota                       int64
	// sizes are those of the database meanwhile; long: ports were connected for ten minutes.
	sizes []databaseSize
	long  bool
}

// static connects ports whose adapters have a number in the cluster: each is claimed at the controller.
func (m *measurement) static(ctx context.Context) error {
	if m.Connects == 0 {
		return nil
	}
	m.def.static = true
	if err := m.apply(ctx, patience); err != nil {
		return err
	}
	var err error
	if m.statics, err = m.connectPorts(ctx, true); err != nil {
		return err
	}
	if err := m.weigh(); err != nil {
		return err
	}
	return m.crowd.bound(ctx, m.process)
}

// ephemeral connects ports that are their hosts' own, and are reported.
func (m *measurement) ephemeral(ctx context.Context) (err error) {
	if m.Connects > 0 {
		m.ephemerals, err = m.connectPorts(ctx, false)
	}
	return err
}

// connectPorts connects ports in turn on all hosts, each at its time, whether or not those before have come to an end.
func (m *measurement) connectPorts(ctx context.Context, static bool) (*portLoad, error) {
	out := &portLoad{ports: int(float64(m.Connects) * m.Connecting.Seconds()), long: m.Connecting >= TenMinutes}
	out.delays = make([]float64, out.ports)
	account, err := m.accounts(ctx, out)
	if err != nil {
		return nil, err
	}
	again := m.crowd.again.Load()
	began := time.Now()
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	watched := m.watchDatabase(watching, began)
	g, gctx := errgroup.WithContext(ctx)
	for i := range out.ports {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(m.Connects))
		if !sleepUntil(gctx, due) {
			break
		}
		m.connected++
		h, number := m.crowd.hosts[i%len(m.crowd.hosts)], m.connected
		g.Go(func() error {
			err := h.connect(gctx, number, static, patience+m.Connecting)
			out.delays[i] = time.Since(due).Seconds()
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out.seconds, out.again = time.Since(began).Seconds(), m.crowd.again.Load()-again
	last := time.Now()
	if err := m.allUp(ctx); err != nil {
		return nil, err
	}
	out.shown = time.Since(last).Seconds()
	unwatch()
	watch := <-watched
	out.sizes = watch.sizes
	return out, errors.Join(watch.err, account())
}

// accounts notes what was used so far; account is called at the end.
func (m *measurement) accounts(ctx context.Context, out *portLoad) (account func() error, err error) {
	status, err := m.process.Status(ctx)
	if err != nil {
		return nil, err
	}
	written, err := m.process.written()
	if err != nil {
		return nil, err
	}
	used, err := m.process.working()
	if err != nil {
		return nil, err
	}
	return func() error {
		now, err := m.process.working()
		if err != nil {
			return err
		}
		bytes, err := m.process.written()
		if err != nil {
			return err
		}
		after, err := m.process.Status(ctx)
		if err != nil {
			return err
		}
		out.used, out.written = now.since(used), bytes-written
		out.transactions = after.Store.Revision - status.Store.Revision
		out.inUse, out.inUseAfter = status.Store.InUse, after.Store.InUse
		out.database, out.quota = after.Store.Size, after.Store.Quota
		return nil
	}, nil
}

// sleepUntil waits for a time; false when ctx has ended.
func sleepUntil(ctx context.Context, at time.Time) bool {
	left := time.Until(at)
	if left <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(left):
		return true
	case <-ctx.Done():
		return false
	}
}

// connect connects a port on the host, as an agent does when a guest starts. What no controller answers is asked again,
// for as long as patience.
func (h *host) connect(ctx context.Context, number int, static bool, patience time.Duration) error {
	p := simulatedPort{name: fmt.Sprintf("guest%d/eth0", number), device: fmt.Sprintf("vnet%d", number),
		mac:   fmt.Sprintf("02:01:%02x:%02x:%02x:%02x", number>>24&0xff, number>>16&0xff, number>>8&0xff, number&0xff),
		group: groupName(number)}
	if static {
		p.group = staticName(number)
		p.vm, p.adapter = fmt.Sprintf("6f9619ff-8b86-4011-b42d-%012x", number), "net0"
		var err error
		if p.port, err = h.claim(ctx, &p, patience); err != nil {
			return err
		}
	}
	h.mu.Lock()
	h.ports = append(h.ports, p)
	h.mu.Unlock()
	h.client.Changed()
	return nil
}

// mostWait is how long a host waits at most before it asks again.
const mostWait = 2 * time.Second

// claim asks for the static port of an adapter.
func (h *host) claim(ctx context.Context, p *simulatedPort, patience time.Duration) (port string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for wait := 20 * poll; ; wait = min(2*wait, mostWait) {
		a, err := h.client.Claim(ctx, &controllerv1.PortClaim{Switch: "dvs", PortGroup: p.group, Vm: p.vm,
			Adapter: p.adapter, Mac: p.mac})
		switch {
		case errors.Is(err, cluster.ErrNoController) && sleepUntil(ctx, time.Now().Add(wait)):
			h.again.Add(1)
			continue
		case err != nil:
			return "", fmt.Errorf("%s claims a port for %s: %w", h.name(), p.name, err)
		case a.GetRefused() != "" || a.GetPort().GetPort() == "":
			return "", fmt.Errorf("%s claims a port for %s: the controller answers %q", h.name(), p.name,
				a.GetRefused())
		}
		return a.GetPort().GetPort(), nil
	}
}

// Bound implements cluster.Ports.
func (h *host) Bound(_ context.Context, m *controllerv1.StaticPorts) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.GetWhole() || h.boundTo == nil {
		h.boundTo = map[string]string{}
	}
	for _, id := range m.GetRemoved() {
		delete(h.boundTo, id)
	}
	for _, p := range m.GetPut() {
		h.boundTo[p.GetPort()] = p.GetVm()
	}
	return nil
}

// Conflicts implements cluster.Ports.
func (h *host) Conflicts(_ context.Context, m *controllerv1.PortConflicts) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conflicts = len(m.GetConflicts())
	return nil
}

// Unsettled implements cluster.Ports. A claim is repeated until it is answered, so none is left.
func (h *host) Unsettled(context.Context) ([]*controllerv1.PortClaim, error) { return nil, nil }

// Settled implements cluster.Ports.
func (h *host) Settled(context.Context, *controllerv1.PortClaim, *controllerv1.PortAnswer) error {
	return nil
}

// bound waits until the controller has sent each host all static ports that it has claimed, and no others. A port that
// two adapters have, or a conflict, is an error.
func (c *crowd) bound(ctx context.Context, p *process) error {
	owners := map[string]string{}
	for _, h := range c.hosts {
		for began := time.Now(); ; time.Sleep(poll) {
			err := h.asBound()
			if err == nil {
				break
			}
			if time.Since(began) > patience {
				return err
			}
			if err := p.failed(ctx); err != nil {
				return err
			}
		}
		for _, port := range h.ports {
			if other, taken := owners[port.port]; taken && port.port != "" {
				return fmt.Errorf("port %s was given to %s and to %s", port.port, other, port.name)
			}
			owners[port.port] = port.name
		}
	}
	return nil
}

// asBound compares the ports that the host has claimed with those that the controller says are bound there.
func (h *host) asBound() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	claimed := 0
	for _, p := range h.ports {
		if p.port == "" {
			continue
		}
		if claimed++; h.boundTo[p.port] != p.vm {
			return fmt.Errorf("%s has claimed port %s for %s, and the controller says that it is bound to %q there",
				h.name(), p.port, p.vm, h.boundTo[p.port])
		}
	}
	if len(h.boundTo) != claimed || h.conflicts != 0 {
		return fmt.Errorf("%s has claimed %d ports; by the controller it has %d, and %d conflicts", h.name(), claimed,
			len(h.boundTo), h.conflicts)
	}
	return nil
}
