package linkproto

import (
	"encoding/binary"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"heddle/internal/abi"
	"heddle/internal/fabric"
	"heddle/internal/plan"
)

// TunnelWant says what is probed through the tunnel of one switch.
type TunnelWant struct {
	// Ifindex is that of the tunnel's device, Port its UDP port on all hosts.
	Ifindex uint32
	Port    uint16
	fabric.Ring
	// Keys sign probes; the first one signs, all are accepted.
	Keys []fabric.Secret
}

// TunnelReport is what the probes through one tunnel have found so far.
type TunnelReport struct {
	Results []fabric.Result
	// Deaf are the pairs of an own endpoint and another one whose probes arrive, and which does not hear the echoes.
	Deaf [][2]netip.Addr
}

// TunnelReports are those of all switches, and the counts since the start.
type TunnelReports struct {
	By     map[string]TunnelReport
	Counts ProbeCounts
}

// PacketSender sends a UDP packet from an address of this host, never fragmented on the way.
type PacketSender func(from netip.Addr, to netip.AddrPort, packet []byte) error

// mostProbes is how many probes and echoes per second are processed of a tunnel. A proxy of a subnet is probed by every
// host of the others.
const mostProbes = 4000

// Tunnels sends and answers probes through tunnels. They are sent as the tunnel's packets are, to its UDP port, in a
// VNI that no segment has, each from another source port: so they go where the guests' frames go. Its methods may be
// called from any goroutine and do not wait for the network.
type Tunnels struct {
	engine *engine
	log    *slog.Logger
	send   PacketSender
	report func(TunnelReports)

	mu      sync.Mutex
	want    map[string]TunnelWant
	running map[string]*tunnel
	counts  ProbeCounts
	told    time.Time
}

// tunnel is that of one switch.
type tunnel struct {
	TunnelWant
	machine *fabric.Machine
	epoch   uint64
	own     map[fabric.EndID]netip.Addr
	others  map[fabric.EndID]netip.Addr
	by      map[fabric.End]netip.Addr
}

// StartTunnels starts without tunnels. Results are passed to report, one call at a time, from a goroutine of its own.
func StartTunnels(open Opener, send PacketSender, log *slog.Logger, report func(TunnelReports)) *Tunnels {
	t := &Tunnels{log: log, send: send, report: report, running: map[string]*tunnel{}}
	w := newWires(open, log, hearsProbes())
	w.most = mostProbes
	t.engine = newEngine(w)
	t.engine.start(t, t.deliver)
	return t
}

// Want sets what is probed, by switch.
func (t *Tunnels) Want(want map[string]TunnelWant) {
	t.mu.Lock()
	t.want = want
	t.mu.Unlock()
	signal(t.engine.poked)
}

// Close ends the goroutines.
func (t *Tunnels) Close() error {
	t.engine.stop()
	return t.engine.wires.close()
}

func (t *Tunnels) deliver() {
	t.mu.Lock()
	r := TunnelReports{By: map[string]TunnelReport{}, Counts: t.counts}
	for name, one := range t.running {
		r.By[name] = one.found()
	}
	t.told = time.Now()
	t.mu.Unlock()
	t.report(r)
}

func (n *tunnel) found() (r TunnelReport) {
	r.Results = n.machine.Results()
	for _, d := range n.machine.Deaf() {
		own, other := n.own[d.To], n.others[d.From]
		if own.IsValid() && other.IsValid() {
			r.Deaf = append(r.Deaf, [2]netip.Addr{own, other})
		}
	}
	return r
}

func (t *Tunnels) adopt(now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.running
	t.running = map[string]*tunnel{}
	sockets := map[uint32]bool{}
	for name, w := range t.want {
		one := was[name]
		if one == nil {
			one = &tunnel{machine: fabric.NewMachine()}
		}
		one.adopt(w, now)
		t.running[name], sockets[w.Ifindex] = one, true
		if err := t.engine.wires.use(w.Ifindex); err != nil {
			t.log.Warn("no probes through a tunnel", "switch", name, "err", err)
		}
	}
	if err := t.engine.wires.keep(sockets); err != nil {
		t.log.Warn("close sockets of probes", "err", err)
	}
	if len(was) > 0 && len(t.running) == 0 {
		signal(t.engine.ripe)
	}
	return t.rest(now)
}

// adopt takes over what is wanted; paths that stay keep their results.
func (n *tunnel) adopt(w TunnelWant, now time.Time) {
	n.TunnelWant = w
	n.own, n.others = map[fabric.EndID]netip.Addr{}, map[fabric.EndID]netip.Addr{}
	n.by = map[fabric.End]netip.Addr{}
	for _, a := range w.Own {
		n.own[fabric.TunnelEnd(a).ID()], n.by[fabric.TunnelEnd(a)] = a, a
	}
	for _, a := range w.Others {
		n.others[fabric.TunnelEnd(a).ID()], n.by[fabric.TunnelEnd(a)] = a, a
	}
	n.turn(now)
}

// turn chooses which pairs are probed.
func (n *tunnel) turn(now time.Time) {
	n.epoch = fabric.Epoch(now.Unix())
	n.machine.Set(n.Tasks(n.epoch), now)
}

// rest reports what has changed, and returns when something is due.
func (t *Tunnels) rest(now time.Time) (next time.Time) {
	changed := false
	for _, one := range t.running {
		changed = one.machine.Changed() || changed
		if at := one.machine.Next(); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if changed || now.Sub(t.told) > refreshEvery && !next.IsZero() {
		signal(t.engine.ripe)
	}
	return next
}

func (t *Tunnels) tick(now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.running {
		if len(one.Keys) == 0 {
			continue
		}
		if fabric.Epoch(now.Unix()) != one.epoch {
			one.turn(now)
		}
		for _, s := range one.machine.Due(now) {
			t.counts.Sent++
			t.pass(one, one.by[s.Path.From], one.by[s.Path.To], s.Probe)
		}
	}
	return t.rest(now)
}

// The Ethernet addresses of probes inside the tunnel: nobody's, as the agent takes them by their type.
var probeTo, probeFrom = plan.MAC{0x02, 'H', 'd', 'l', 0, 1}, plan.MAC{0x02, 'H', 'd', 'l', 0, 2}

// pass sends a probe or an echo.
func (t *Tunnels) pass(n *tunnel, from, to netip.Addr, p fabric.Probe) {
	packet := binary.BigEndian.AppendUint32(nil, 1<<27) // RFC 7348: the VNI is valid
	packet = binary.BigEndian.AppendUint32(packet, abi.VniOfProbes<<8)
	packet = append(packet, n.Keys[0].Frame(p, probeFrom, probeTo)...)
	if err := t.send(from, netip.AddrPortFrom(to, n.Port), packet); err != nil {
		t.log.Debug("probe through a tunnel not sent", "from", from, "to", to, "bytes", p.Size, "err", err)
	}
}

func (t *Tunnels) frame(now time.Time, h heard) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.running {
		if one.Ifindex == h.ifindex && len(one.Keys) > 0 {
			t.take(one, h.payload, now)
		}
	}
	return t.rest(now)
}

// take takes in a probe or an echo.
func (t *Tunnels) take(n *tunnel, payload []byte, now time.Time) {
	probe, err := fabric.Read(payload, n.Keys)
	switch {
	case err != nil:
		t.counts.Forged++
	case probe.Echo:
		if own, is := n.own[probe.From]; is {
			n.machine.Echo(probe, own.String(), now)
		}
	default:
		own, other := n.own[probe.To], n.others[probe.From]
		if !own.IsValid() || !other.IsValid() {
			return // of a host that this one was not told of yet
		}
		t.counts.Answered++
		n.machine.Heard(probe, now)
		t.pass(n, own, other, probe.Answer())
	}
}
