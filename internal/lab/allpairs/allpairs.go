package allpairs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab"
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/scenario"
	"heddle/internal/lab/traffic"
)

// Name is the experiment's name, Title what it shows.
const (
	Name  = "all-pairs"
	Title = "nested hosts that all send to all at once, as for vSAN (real traffic only)"
)

// host is the physical host of the lab.
const host = "esx1"

// row is one setting.
type row struct {
	name        string
	hosts       int
	promiscuous bool
}

func rows() (list []row) {
	for _, n := range []int{2, 4, 8} {
		list = append(list, row{fmt.Sprintf("promiscuous-%d", n), n, true}, row{fmt.Sprintf("mac-learning-%d", n), n,
			false})
	}
	return list
}

// Options say how the experiment runs.
type Options struct {
	// RunDir and Program are those of lab.Options.
	RunDir, Program string
	// Quick measures for a shorter time.
	Quick bool
	// Rows selects rows by name; empty: all.
	Rows []string
	// Progress, when set, is called with what is being done now.
	Progress func(string)
}

// Check says whether the selected rows exist.
func (o Options) Check() error {
	_, err := chosen(o.Rows)
	return err
}

// RowNames are the names of the experiment's rows.
func RowNames() []string { return experiment.RowNames(rows(), func(r row) string { return r.name }) }

func chosen(names []string) ([]row, error) {
	return experiment.Pick(Name, rows(), func(r row) string { return r.name }, names)
}

// Pair is what was measured from one nested host to another while all others sent too.
type Pair struct {
	From string `json:"from"`
	To   string `json:"to"`
	// FromUplink and ToUplink are the uplinks that the two ports use.
	FromUplink string `json:"from_uplink"`
	ToUplink   string `json:"to_uplink"`
	// Stream is bits per second of payload.
	Stream float64 `json:"stream_bps"`
	// P50 and P99 of the round-trip time of pings meanwhile, in seconds; 0 without an answer.
	P50 float64 `json:"rtt_p50_s"`
	P99 float64 `json:"rtt_p99_s"`
	// Pings are requests, Lost those without an answer, Replies all replies: more than answers are duplicates.
	Pings   uint64 `json:"pings"`
	Lost    uint64 `json:"pings_lost"`
	Replies uint64 `json:"replies"`
}

// Measured is the result of one row.
type Measured struct {
	row      row
	scenario *scenario.Scenario
	Pairs    []Pair
	// UplinkFrames are the copies that were handed to the uplinks meanwhile, UplinkDropped those that their devices
	// lost.
	UplinkFrames, UplinkDropped uint64
}

// each is how long all pairs send, warmup the time before that counts.
func (o Options) each() (each, warmup time.Duration) {
	if o.Quick {
		return 1500 * time.Millisecond, 300 * time.Millisecond
	}
	return 5 * time.Second, time.Second
}

// Run measures the rows, one lab after the other. It leaves nothing behind, also when ctx ends on the way.
func Run(ctx context.Context, o Options) ([]Measured, error) {
	list, err := chosen(o.Rows)
	if err != nil {
		return nil, err
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	all := make([]Measured, len(list))
	for i, r := range list {
		o.Progress(fmt.Sprintf("%d of %d: %s", i+1, len(list), r.name))
		if all[i], err = o.measure(ctx, r); err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return all, nil
}

// measure builds the lab of a row, and has all pairs send at once.
func (o Options) measure(ctx context.Context, r row) (m Measured, err error) {
	s, err := scenario.Parse(Name+".yaml", []byte(r.labFile()), nil)
	if err != nil {
		return m, err
	}
	l, err := lab.Build(ctx, s, lab.Options{Name: fmt.Sprintf("pairs%d", os.Getpid()), RunDir: o.RunDir,
		Program: o.Program, Progress: o.Progress})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, l.Down()) }()
	g := &rig{row: r, lab: l}
	g.each, g.warmup = o.each()
	if err := g.awaken(ctx); err != nil {
		return m, err
	}
	m, err = g.atOnce(ctx)
	m.row, m.scenario = r, s
	return m, err
}

// rig is a lab that is up.
type rig struct {
	row
	lab          *lab.Lab
	each, warmup time.Duration
}

func node(i int) string { return fmt.Sprintf("n%d", i+1) }

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 168, 69, byte(201 + i)}) }

// pairs calls do for each ordered pair, all at the same time, and returns the first error.
func (g *rig) pairs(ctx context.Context, do func(ctx context.Context, n int, p traffic.Pair) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	n := 0
	for i := range g.hosts {
		for j := range g.hosts {
			if i == j {
				continue
			}
			from, err := g.lab.NS(node(i))
			if err != nil {
				return err
			}
			to, err := g.lab.NS(node(j))
			if err != nil {
				return err
			}
			at := n
			n++
			all.Go(func() {
				if err := do(ctx, at, traffic.Pair{Client: traffic.Endpoint{NS: from},
					Server: traffic.Endpoint{NS: to}, Addr: address(j)}); err != nil {
					cancel(fmt.Errorf("%s to %s: %w", node(i), node(j), err))
				}
			})
		}
	}
	all.Wait()
	return context.Cause(ctx)
}

// patience is how long the first answers may take.
const patience = time.Minute

// awaken waits until each pair answers: then addresses are resolved, and every switch has learned them.
func (g *rig) awaken(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	load := traffic.Load{Kind: traffic.KindEcho, Duration: 250 * time.Millisecond, Rate: 20}
	return g.pairs(ctx, func(ctx context.Context, _ int, p traffic.Pair) error {
		for {
			res, err := traffic.Send(ctx, p.Client, load, netip.AddrPortFrom(p.Addr, 0))
			switch {
			case ctx.Err() != nil:
				return fmt.Errorf("no answer within %v", patience)
			case err == nil && res.Echo.Answered == res.Echo.Requests:
				return nil
			}
		}
	})
}

// pingRate is how many pings each pair sends per second.
const pingRate = 20

// atOnce has all pairs send a stream and pings at the same time.
func (g *rig) atOnce(ctx context.Context) (m Measured, err error) {
	m.Pairs = make([]Pair, g.hosts*(g.hosts-1))
	uplinks, err := g.uplinks(ctx)
	if err != nil {
		return m, err
	}
	before, err := g.counts(ctx)
	if err != nil {
		return m, err
	}
	err = g.pairs(ctx, func(ctx context.Context, n int, p traffic.Pair) error {
		one := &m.Pairs[n]
		one.To = node(int(p.Addr.As4()[3]) - 201)
		from := n / (g.hosts - 1)
		one.From = node(from)
		one.FromUplink, one.ToUplink = uplinks[one.From], uplinks[one.To]
		return one.measure(ctx, p, g.each, g.warmup)
	})
	if err != nil {
		return m, err
	}
	after, err := g.counts(ctx)
	m.UplinkFrames, m.UplinkDropped = after.frames-before.frames, after.lost-before.lost
	return m, err
}

// measure sends a stream and pings at the same time.
func (p *Pair) measure(ctx context.Context, ends traffic.Pair, each, warmup time.Duration) error {
	var both sync.WaitGroup
	var echo, stream traffic.Result
	var echoErr, streamErr error
	both.Go(func() {
		echo, echoErr = traffic.Send(ctx, ends.Client, traffic.Load{Kind: traffic.KindEcho, Duration: warmup + each,
			Rate: pingRate}, netip.AddrPortFrom(ends.Addr, 0))
	})
	both.Go(func() {
		stream, streamErr = traffic.Measure(ctx, ends, traffic.Load{Kind: traffic.KindStream, Warmup: warmup,
			Duration: each})
	})
	both.Wait()
	if err := errors.Join(echoErr, streamErr); err != nil {
		return err
	}
	p.Stream = stream.Stream.BitsPerSecond
	p.P50, p.P99 = echo.Echo.RTT.P50, echo.Echo.RTT.P99
	p.Pings, p.Replies, p.Lost = echo.Echo.Requests, echo.Echo.Replies, echo.Echo.Requests-echo.Echo.Answered
	return nil
}

// uplinks are those that the nested hosts' ports use.
func (g *rig) uplinks(ctx context.Context) (map[string]string, error) {
	state, err := g.lab.Agent(host).State(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, p := range state.Ports {
		all[p.Name] = strings.Join(p.Uplinks, "+")
	}
	return all, nil
}

type counts struct{ frames, lost uint64 }

// counts are what the physical host's uplinks were handed, and what their devices lost.
func (g *rig) counts(ctx context.Context) (sum counts, err error) {
	stats, err := g.lab.Agent(host).Stats(ctx)
	if err != nil {
		return sum, err
	}
	for _, s := range stats {
		if s.Uplink {
			sum.add(s)
		}
	}
	return sum, nil
}

func (c *counts) add(s api.Stats) {
	for _, n := range s.Counters {
		if strings.HasPrefix(n.Name, "packetsOut") {
			c.frames += n.Value
		}
	}
	c.lost += s.Device.Lost()
}

// labFile is the lab of a row: the physical host of nested-mac-learning with more nested hosts.
func (r row) labFile() string {
	var b strings.Builder
	policy, checks := "forgedTransmits: accept, macLearning: {enabled: true}", ""
	if r.promiscuous {
		policy, checks = "forgedTransmits: accept, promiscuous: accept", "checks: {reversePathPromiscuous: false}"
	}
	fmt.Fprintf(&b, `name: all-pairs
title: %d nested hosts on one physical host with two uplinks
hosts:
  - name: esx1
    config:
      switches:
        - name: lab
          kind: distributed
          %s
          uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: eno2}]
          defaults:
            teaming: {policy: originating-port, active: [uplink1, uplink2]}
          portGroups:
            - {name: nested, security: {%s}}
      ports:
`, r.hosts, checks, policy)
	for i := range r.hosts {
		fmt.Fprintf(&b, "        - {name: %s, switch: lab, portGroup: nested, device: vm-%s}\n", node(i), node(i))
	}
	for i := range r.hosts {
		fmt.Fprintf(&b, `  - name: %s
    nics: [{device: vmnic0, host: esx1, port: %s}]
    config:
      switches:
        - {name: vSwitch0, kind: standard, uplinks: [{name: uplink1, device: vmnic0}], portGroups: [{name: vmkernel}]}
      ports:
        - {name: vmk0, switch: vSwitch0, portGroup: vmkernel, role: host, device: vmk0, addresses: [%s/24]}
`, node(i), node(i), address(i))
	}
	b.WriteString(`switches:
  - {name: tor, kind: bridge}
links:
  - {a: esx1/eno1, b: tor/p1, rate: 10Gbit}
  - {a: esx1/eno2, b: tor/p2, rate: 10Gbit}
`)
	return b.String()
}
