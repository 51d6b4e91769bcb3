package controlplane

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
	"heddle/internal/agent/state"
	"heddle/internal/api"
)

// host is a simulated one. It stands in for the agent below the client that speaks with the controller.
type host struct {
	number int
	ports  []simulatedPort // more are appended, none is changed
	record *cluster.Record
	rack   string
	// locating is the host's part in overlay segments; nil for none.
	locating *locatingHost
	made     atomic.Int64 // connections
	turn     chan struct{}
	client   *cluster.Client
	began    time.Time     // of its clock
	again    *atomic.Int64 // claims that no controller answered, of all hosts

	mu     sync.Mutex
	active *state.Slice
	at     time.Time // when it took the slice
	// boundTo are the VMs that the controller has bound ports to here, by the port; conflicts is their number.
	boundTo   map[string]string
	conflicts int
	// guests are VMs that move, by their UUIDs.
	guests map[string]*guest
}

// Given implements cluster.Host.
func (h *host) Given(context.Context) (*state.Slice, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.active, nil
}

// Take implements cluster.Host.
func (h *host) Take(ctx context.Context, next *state.Slice) ([]string, error) {
	if err := h.awaitInstant(ctx, next.NotBefore); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.active != nil && next.Revision < h.active.Revision {
		return []string{fmt.Sprintf("revision %d comes after %d", next.Revision, h.active.Revision)}, nil
	}
	h.active, h.at = next, time.Now()
	return nil, nil
}

// Report implements cluster.Host. It makes the report anew each time, as an agent does.
func (h *host) Report(context.Context) (*controllerv1.HostReport, error) {
	moving := &controllerv1.HostReport{}
	h.mu.Lock()
	ports := h.ports
	h.reportGuests(moving)
	h.mu.Unlock()
	list := make([]controllerv1.HostPort, len(ports))
	r := &controllerv1.HostReport{Ports: make([]*controllerv1.HostPort, len(ports))}
	for i := range list {
		p, has := &list[i], &ports[i]
		p.Switch, p.PortGroup, p.State = "dvs", has.group, "up"
		p.Name, p.Device, p.Mac = has.name, has.device, has.mac
		p.Vm, p.Adapter, p.Port = has.vm, has.adapter, has.port
		p.Since = timestamppb.New(time.Unix(1_700_000_000+int64(i), 0))
		r.Ports[i] = p
	}
	r.Ports = append(r.Ports, moving.GetPorts()...)
	return r, nil
}

// simulatedPort is what a host knows of a port without looking. vm, adapter and port are those of a static one.
type simulatedPort struct{ name, device, mac, group, vm, adapter, port string }

// count is how many ports the host has.
func (h *host) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ports)
}

func newHost(number, ports int) *host {
	h := &host{number: number, began: time.Now().Add(-time.Duration(number) * time.Hour),
		ports: make([]simulatedPort, ports)}
	for i := range h.ports {
		h.ports[i] = simulatedPort{name: fmt.Sprintf("vm%d/eth0", number*ports+i), device: fmt.Sprintf("tap%d", i),
			mac:   fmt.Sprintf("02:00:%02x:%02x:%02x:%02x", number>>8&0xff, number&0xff, i>>8&0xff, i&0xff),
			group: groupName(i)}
	}
	return h
}

// has says which revision is active, and since when.
func (h *host) has() (revision int64, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.active == nil {
		return 0, time.Time{}
	}
	return h.active.Revision, h.at
}

// dial connects from an address of the loopback network: one address alone has too few ports for many hosts.
func (h *host) dial(ctx context.Context, network, address string) (net.Conn, error) {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+h.number/250), 1)}
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	greeted := sync.OnceFunc(func() { <-h.turn })
	c, err := (&net.Dialer{LocalAddr: from}).DialContext(ctx, network, address)
	if err != nil {
		greeted()
		return nil, err
	}
	h.made.Add(1)
	return &greeting{c, greeted}, nil
}

func (h *host) name() string { return fmt.Sprintf("host%05d", h.number) }

// greeters is how many hosts compute their hello at a time. Each host has a processor of its own for that; here, where
// they share two, a controller would otherwise see them connect and say nothing for as long as all of them compute.
const greeters = 16

// greeting is a connection that knows when its host has said hello, or has given up.
type greeting struct {
	net.Conn
	greeted func()
}

func (g *greeting) Write(b []byte) (int, error) {
	defer g.greeted()
	return g.Conn.Write(b)
}

func (g *greeting) Close() error {
	g.greeted()
	return g.Conn.Close()
}

// join makes the host part of the controller's cluster.
func (h *host) join(ctx context.Context, p *process) error {
	token, err := p.JoinToken(ctx, api.JoinTerms{Labels: map[string]string{"rack": h.rack}})
	if err != nil {
		return err
	}
	h.record, err = cluster.JoinInMemory(ctx, cluster.Request{Controller: p.address, Token: token.Token,
		Name: h.name(), Dial: h.dial})
	return err
}

// crowd is all hosts of a run.
type crowd struct {
	hosts     []*host
	connected atomic.Int64
	again     atomic.Int64
	stop      context.CancelFunc
	running   sync.WaitGroup
}

func newCrowd(n, ports int) *crowd {
	c := &crowd{}
	turn := make(chan struct{}, greeters)
	for i := range n {
		h := newHost(i, ports)
		h.rack = rackName(i)
		h.turn, h.again = turn, &c.again
		c.hosts = append(c.hosts, h)
	}
	return c
}

// run starts the agents' clients.
func (c *crowd) run(ctx context.Context) {
	ctx, c.stop = context.WithCancel(ctx)
	for _, h := range c.hosts {
		up := false // Connected is called by one goroutine
		o := cluster.Options{Host: h, Ports: h, Together: h, Calls: h.calls(), Membership: h.record,
			Log: slog.New(slog.DiscardHandler), Version: "simulated", Dial: h.dial,
			Connected: func(controller string, _ error) {
				if now := controller != ""; now != up {
					up = now
					c.connected.Add(map[bool]int64{true: 1, false: -1}[now])
				}
			}}
		if h.locating != nil {
			o.Talks = []cluster.Talk{h.locating.Talk()}
		}
		h.client = cluster.New(o)
		c.running.Go(func() { h.client.Run(ctx) })
	}
}

// end ends the agents' clients.
func (c *crowd) end() {
	if c.stop != nil {
		c.stop()
	}
	c.running.Wait()
}

// await waits until all hosts are connected and have that revision active, and says after how long the last one had.
func (c *crowd) await(ctx context.Context, p *process, revision int64, began time.Time) (time.Duration, error) {
	for {
		lacking, last := 0, began
		for _, h := range c.hosts {
			got, at := h.has()
			if got < revision {
				lacking++
			}
			if at.After(last) {
				last = at
			}
		}
		here := int(c.connected.Load())
		if lacking == 0 && here == len(c.hosts) {
			return last.Sub(began), nil
		}
		if err := p.failed(ctx); err != nil {
			return 0, err
		}
		if time.Since(began) > patience {
			return 0, fmt.Errorf("after %s, %d of %d hosts are connected and %d lack revision %d", patience, here,
				len(c.hosts), lacking, revision)
		}
		time.Sleep(poll)
	}
}

// connections is how many the hosts have made so far.
func (c *crowd) connections() (n int64) {
	for _, h := range c.hosts {
		n += h.made.Load()
	}
	return n
}

// delays are how long after that time each host had what it has, in seconds.
func (c *crowd) delays(began time.Time) []float64 {
	list := make([]float64, len(c.hosts))
	for i, h := range c.hosts {
		_, at := h.has()
		list[i] = at.Sub(began).Seconds()
	}
	return list
}
