package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
)

// Names of the tests and rows of the tunnel.
const (
	tunnelPeer = "tunnel"
	// tunnelTest begins the names of the tests of traffic through a tunnel.
	tunnelTest = "tunnel "
	programOut = "tunnel program, out"
	programIn  = "tunnel program, in"
	// tunnelDev is the device of the tunnel of the switch "bench".
	tunnelDev = "vx-bench"
)

// tunnelStates are the states in which traffic through a tunnel is measured, and its programs.
func tunnelStates() []captureState {
	return []captureState{
		{name: captureOff},
		{name: "filter matches nothing", args: []string{"tunnel", "--filter", filterOfNone}},
		{name: captureAll, args: []string{"tunnel"}},
		{name: "outer, filter matches nothing", args: []string{"tunnel", "--outer", "--filter", "udp src port 1"}},
		{name: "outer, everything", args: []string{"tunnel", "--outer"}},
	}
}

// onProgram says that the capture is made by the tunnel's programs, and not beside them.
func (s captureState) onProgram() bool { return len(s.args) < 2 || s.args[1] != "--outer" }

// openTunnel makes two hosts with a guest each in an overlay segment. Captures run on the first guest's host.
func (r *captureRun) openTunnel(ctx context.Context) (err error) {
	connect := func(ctx context.Context, t *twoHosts) error {
		for i, h := range t.hosts {
			dir, err := os.MkdirTemp("", "hb-capture-")
			if err != nil {
				return err
			}
			t.path.clean.add(func() error { return os.RemoveAll(dir) })
			config := filepath.Join(dir, "heddle.yaml")
			if err := os.WriteFile(config, []byte(h.tunnelConfig()), 0o600); err != nil {
				return err
			}
			if i == 0 {
				r.tunnelHost = capturedHost{machine{ns: h.ns}, dir}
			}
			if err := t.path.startAgent(machine{ns: h.ns}, r.opts.Heddle, dir, config); err != nil {
				return err
			}
		}
		return nil
	}
	r.tunnel, err = Peer{tunnelPeer, func(ctx context.Context, p *path) error {
		return OverlayOptions{}.connect(ctx, tunnelPeer, p, connect)
	}}.open(ctx)
	return err
}

// tunnelConfig is that of one of two hosts whose guests are in an overlay segment.
func (h *hostOfTwo) tunnelConfig() string {
	return fmt.Sprintf(`switches:
  - name: bench
    tunnel: {endpoints: [{address: %s}], peers: [{address: %s}]}
    portGroups: [{name: guests, overlay: {vni: 5000}}]
ports: [{name: guest, switch: bench, portGroup: guests, device: %s, mac: %q}]
`, h.addr, h.other, vmDev, h.guest.mac)
}

// tunnelRound measures everything of the tunnel in one state.
func (r *captureRun) tunnelRound(ctx context.Context, s captureState, n int, into captureRound) error {
	c, err := r.begin(ctx, r.tunnelHost, s)
	if err != nil {
		return err
	}
	defer c.kill()
	if err := r.tests.inTurn(ctx, n, func(t test, client, server []int) error {
		load := traffic.Load{Kind: t.kind, Warmup: r.opts.Warmup, Duration: r.opts.Duration}
		res, err := r.opts.measure(ctx, r.tunnel.pair(client, server), load)
		into.samples[cell{tunnelTest + t.name, s.name}] = res
		return err
	}, r.cpus); err != nil {
		return err
	}
	if s.onProgram() {
		if err := r.tunnelPrograms(ctx, s, into); err != nil {
			return err
		}
	}
	return r.ended(c, tunnelPeer, s, into)
}

// tunnelPrograms measures how long the programs of the tunnel's device take for a frame, by the kernel's account of
// them while guests exchange small frames.
func (r *captureRun) tunnelPrograms(ctx context.Context, s captureState, into captureRound) (err error) {
	account, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		return fmt.Errorf("have the kernel account for programs: %w", err)
	}
	defer func() { err = errors.Join(err, account.Close()) }()
	before, err := r.programsRan()
	if err != nil {
		return err
	}
	load := traffic.Load{Kind: traffic.KindRR, Warmup: r.opts.Warmup, Duration: r.opts.Duration}
	if _, err := r.opts.measure(ctx, r.tunnel.pair(r.cpus[:1], r.cpus[:1]), load); err != nil {
		return err
	}
	after, err := r.programsRan()
	if err != nil {
		return err
	}
	for name, now := range after {
		was := before[name]
		if now.runs == was.runs {
			return fmt.Errorf("no frame ran the %s", name)
		}
		into.frames[name+s.name] = (now.seconds - was.seconds) / float64(now.runs-was.runs)
	}
	return nil
}

// programRan is how often a program ran, and for how long.
type programRan struct {
	runs    uint64
	seconds float64
}

// programsRan are the accounts of the programs of the tunnel's device, by their rows.
func (r *captureRun) programsRan() (all map[string]programRan, err error) {
	all = map[string]programRan{}
	err = r.tunnelHost.machine.ns.Do(func() error {
		for name, where := range map[string]ebpf.AttachType{programOut: ebpf.AttachTCXEgress,
			programIn: ebpf.AttachTCXIngress} {
			if all[name], err = ranOn(tunnelDev, where); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// ranOn is what the programs of a device have run together: a frame runs each once.
func ranOn(device string, where ebpf.AttachType) (all programRan, err error) {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return all, err
	}
	attached, err := link.QueryPrograms(link.QueryOptions{Target: l.Attrs().Index, Attach: where})
	if err != nil {
		return all, fmt.Errorf("programs of %s: %w", device, err)
	}
	for _, a := range attached.Programs {
		p, err := ebpf.NewProgramFromID(a.ID)
		if err != nil {
			return all, err
		}
		s, err := p.Stats()
		if err = errors.Join(err, p.Close()); err != nil {
			return all, err
		}
		all.runs, all.seconds = s.RunCount, all.seconds+s.Runtime.Seconds()
	}
	return all, nil
}

// tunnelRows are those of traffic through the tunnel, and of its programs.
func (r *captureRun) tunnelRows() (rows []report.Row) {
	for _, t := range r.tests {
		t.name = tunnelTest + t.name
		for _, s := range tunnelStates() {
			rows = append(rows, r.row(t, s, r.lost(tunnelPeer+s.name)))
		}
	}
	for _, name := range []string{programOut, programIn} {
		off := r.frameTimes(name + captureOff)
		for _, s := range tunnelStates() {
			if s.onProgram() {
				v := r.frameTimes(name + s.name)
				rows = append(rows, captureRow(name, s.name, v, report.Ratios(v, off)))
			}
		}
	}
	return rows
}

// leastCPURatio is what a capture that matches nothing may cost in any case, of the CPU time without it.
const leastCPURatio = 1.10

// tunnelBudgets hold the CPU time of frames through a tunnel where a capture matches none of them: it may grow by as
// much as at the switch in the same rounds.
func (r *captureRun) tunnelBudgets() (list []report.Budget) {
	const none = "filter matches nothing"
	for _, t := range r.tests {
		cpu := func(res traffic.Result) float64 { x, y := t.cpu(res); return x + y }
		atTunnel := t
		atTunnel.name = tunnelTest + t.name
		limit := report.Summarise(report.Ratios(r.of(t, none, cpu), r.of(t, captureOff, cpu)))
		v := report.Summarise(report.Ratios(r.of(atTunnel, none, cpu), r.of(atTunnel, captureOff, cpu)))
		list = append(list, report.Hold(atTunnel.name+", CPU of off, "+none, v.Median, report.Ratio, report.AtMost,
			max(limit.Median, leastCPURatio)).Resolve(medianError(v)))
	}
	return list
}

// medianError is the standard error of a median, from the quartiles as if the values were normally distributed; NaN
// where there are too few.
func medianError(s report.Spread) float64 {
	const (
		leastRounds = 3
		quartiles   = 1.349  // between the quartiles, in standard deviations
		ofMedian    = 1.2533 // how much less certain a median is than a mean
	)
	if s.Rounds < leastRounds {
		return math.NaN()
	}
	return ofMedian * (s.Q3 - s.Q1) / quartiles / math.Sqrt(float64(s.Rounds))
}
