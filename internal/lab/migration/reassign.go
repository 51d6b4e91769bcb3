package migration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/lab"
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/report"
	"heddle/internal/lab/report/topology"
	"heddle/internal/lab/scenario"
	"heddle/internal/lab/traffic"
)

// PortMoveName is the name of the experiment of ports that move on their host, PortMoveTitle what it shows.
const (
	PortMoveName  = "port-move"
	PortMoveTitle = "what a port that runs notices when it moves to another port group, segment or switch (real " +
		"traffic only)"
)

// PortMoveBudget is the longest silence of a port that moves on its host, in seconds.
const PortMoveBudget = 0.010

// portMoveText is the scenario: one host with two distributed switches, each with an uplink to the same physical
// switch.
const portMoveText = `
#      guest
#        |
#       esx1
#      /    \
#   prod    dmz
#      \    /
#       tor ── outside
name: port-move
title: a port that moves on its host
controllers:
  - {name: ctl1, addresses: [10.20.0.1/24]}
definition:
  switches:
    - name: prod
      kind: distributed
      uplinks: [{name: uplink1}]
      portGroups:
        - {name: vms, vlan: {none: true}}
        - {name: other, vlan: {none: true}}
        - {name: segment, vlan: {access: 20}}
    - name: dmz
      kind: distributed
      uplinks: [{name: uplink1}]
      portGroups:
        - {name: vms, vlan: {none: true}}
  templates:
    - name: one-uplink-each
      switches:
        - name: prod
          uplinks: [{name: uplink1, device: eno1}]
        - name: dmz
          uplinks: [{name: uplink1, device: eno2}]
hosts:
  - name: esx1
    config:
      switches:
        - name: management
          kind: standard
          uplinks: [{name: uplink1, device: mgmt0}]
          portGroups: [{name: hosts}]
      ports:
        - {name: vmk0, switch: management, portGroup: hosts, role: host, device: vmk0, addresses: [10.20.0.11/24]}
switches:
  - {name: management}
  - {name: tor}
vms:
  - {name: guest, host: esx1, switch: prod, portGroup: vms, addresses: [10.7.0.1/24]}
routers:
  - {name: outside, interfaces: [{device: eth0, mac: "02:00:00:00:05:09", addresses: [10.7.0.9/24]}]}
links:
  - {a: esx1/mgmt0, b: management/h1}
  - {a: ctl1/eth0, b: management/c1}
  - {a: esx1/eno1, b: tor/prod}
  - {a: esx1/eno2, b: tor/dmz}
  - {a: outside/eth0, b: tor/outside}
`

// place is where a port can be.
type place struct{ sw, group string }

// reassignment is one way of moving on a host.
type reassignment struct {
	name, setting string
	to            place // zero where nothing moves
	// leaves: the port is in another segment then.
	leaves bool
}

var home = place{"prod", "vms"}

func reassignments() []reassignment {
	return []reassignment{
		{name: "still", setting: "nothing moves"},
		{name: "port-group", setting: "another port group of the same segment", to: place{"prod", "other"}},
		{name: "segment", setting: "a port group of another segment", to: place{"prod", "segment"}, leaves: true},
		{name: "switch", setting: "another switch, with another uplink", to: place{"dmz", "vms"}},
	}
}

// CheckPortMove says whether the rows selected of the experiment port-move exist and the numbers are possible.
func (o Options) CheckPortMove() error {
	rest := o
	rest.Rows = nil
	if err := rest.Check(); err != nil {
		return err
	}
	_, err := o.reassigned()
	return err
}

func (o Options) reassigned() ([]reassignment, error) {
	return experiment.Pick(PortMoveName, reassignments(), func(r reassignment) string { return r.name }, o.Rows)
}

// PortMoveRowNames are the names of the rows of the experiment port-move.
func PortMoveRowNames() []string {
	return experiment.RowNames(reassignments(), func(r reassignment) string { return r.name })
}

// reassigned is what one row found, one value for each move.
type reassigned struct {
	row reassignment
	// gapOut and gapIn are the longest silence of the packets from and to the guest, returned how long the controller's
	// answer took; seconds.
	gapOut, gapIn, returned []float64
	out, in                 traffic.Received // sums
	// heard are the guest's packets that were heard on their way to another segment.
	heard uint64
	// wrong are packets after the controller's answer that reached the segment that the guest had left, or did not
	// reach the one that it is in.
	wrong uint64
}

// ground is the lab that is up.
type ground struct {
	lab     *lab.Lab
	fleet   *api.Fleet
	guest   *netns.NS
	outside *netns.NS
	ear     *ear // what passes the uplink of the guest's first switch, with a tag or without
	effort  effort
}

// RunPortMove measures the rows of the experiment port-move, and leaves nothing behind.
func RunPortMove(ctx context.Context, o Options) (_ *report.Report, err error) {
	rows, err := o.reassigned()
	if err != nil {
		return nil, err
	}
	sc, err := scenario.Parse(PortMoveName+".yaml", []byte(portMoveText), nil)
	if err != nil {
		return nil, err
	}
	l, err := lab.Build(ctx, sc, lab.Options{Name: fmt.Sprintf("pm%d", os.Getpid()), RunDir: o.RunDir,
		Program: o.Program, Progress: o.say})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Down()) }()
	g := &ground{lab: l, effort: o.effort()}
	defer func() { err = errors.Join(err, g.close()) }()
	if err := g.prepare(ctx); err != nil {
		return nil, err
	}
	all := make([]reassigned, len(rows))
	for i, r := range rows {
		all[i].row = r
	}
	for n := range g.effort.moves { // rows take turns, so that what disturbs the machine disturbs all of them
		for i := range all {
			o.say(fmt.Sprintf("move %d of %d: %s", n+1, g.effort.moves, all[i].row.name))
			for _, there := range []bool{true, false} {
				if err := g.move(ctx, &all[i], there); err != nil {
					return nil, fmt.Errorf("%s: %w", all[i].row.name, err)
				}
			}
		}
	}
	return reassignReport(all, g.effort), nil
}

func (g *ground) close() error {
	if g.ear == nil {
		return nil
	}
	return g.ear.close()
}

// prepare connects the guest, and has what is outside hear both segments.
func (g *ground) prepare(ctx context.Context) (err error) {
	socket, ok := g.lab.Controller()
	if !ok {
		return errors.New("the lab has no controller")
	}
	g.fleet = api.NewFleet(socket)
	for node, ns := range map[string]**netns.NS{guest: &g.guest, outside: &g.outside} {
		if *ns, err = g.lab.NS(node); err != nil {
			return err
		}
	}
	mac, err := g.addresses()
	if err != nil {
		return err
	}
	torNS, err := g.lab.NS(tor)
	if err != nil {
		return err
	}
	if g.ear, err = listen(torNS, home.sw, mac); err != nil {
		return err
	}
	return g.answered(ctx)
}

// addresses tells both ends of each other, so that nobody asks while packets are counted. It returns the guest's MAC.
func (g *ground) addresses() (mac net.HardwareAddr, err error) {
	other, err := net.ParseMAC(outsideMAC)
	if err != nil {
		return nil, err
	}
	knows := func(ns *netns.NS, ip string, of func() net.HardwareAddr) error {
		return ns.Do(func() error {
			l, err := netlink.LinkByName(guestDevice)
			if err != nil {
				return err
			}
			if ns == g.guest {
				mac = l.Attrs().HardwareAddr
			}
			return netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT,
				IP: net.ParseIP(ip), HardwareAddr: of()})
		})
	}
	err = knows(g.guest, outsideIP, func() net.HardwareAddr { return other })
	if err != nil {
		return nil, err
	}
	return mac, knows(g.outside, guestIP, func() net.HardwareAddr { return mac })
}

// answered waits until all pings of the guest are answered.
func (g *ground) answered(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	load := traffic.Load{Kind: traffic.KindEcho, Duration: 100 * time.Millisecond, Rate: 50}
	for {
		res, err := traffic.Send(ctx, traffic.Endpoint{NS: g.guest}, load, addrPort(outsideIP, 0))
		if err == nil && res.Echo.Answered == res.Echo.Requests {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(errors.New("the guest is not answered"), err, ctx.Err())
		}
	}
}

// move moves the port there, or back, under numbered packets each way, as "heddle port move" does at a controller.
func (g *ground) move(ctx context.Context, m *reassigned, there bool) error {
	to := m.row.to
	if !there {
		to = home
	}
	if err := g.settled(ctx); err != nil {
		return err
	}
	out, in, err := g.streams(ctx, func() error {
		if err := pause(ctx, lead/2); err != nil {
			return err
		}
		began := time.Now()
		if m.row.to != (place{}) {
			if _, err := g.fleet.Reassign(ctx, api.ReassignPort{Port: port, Switch: to.sw,
				PortGroup: to.group}); err != nil {
				return err
			}
		}
		m.returned = append(m.returned, time.Since(began).Seconds())
		return pause(ctx, lead)
	})
	if err != nil {
		return err
	}
	heard := g.ear.told()
	if n, err := g.ear.missed(); err != nil || n > 0 {
		return errors.Join(fmt.Errorf("%d frames were not heard: this measures nothing", n), err)
	}
	if m.row.leaves { // what is outside is in the first segment alone
		m.gapOut = append(m.gapOut, quiet(heard).Seconds())
		m.heard += countHeard(heard, fromGuest)
		m.out.Duplicated, m.out.Reordered = m.out.Duplicated+out.Duplicated, m.out.Reordered+out.Reordered
	} else {
		m.gapOut, m.gapIn = append(m.gapOut, out.LongestGap), append(m.gapIn, in.LongestGap)
		m.out, m.in = plus(m.out, out), plus(m.in, in)
	}
	return g.checked(ctx, m, there && m.row.leaves)
}

func fromGuest(h heard) bool { return h.numbered && h.guests && !h.out }

// quiet is the longest time between two of the guest's numbered packets.
func quiet(list []heard) (longest time.Duration) {
	var last time.Time
	for _, h := range list {
		if !fromGuest(h) {
			continue
		}
		if !last.IsZero() {
			longest = max(longest, h.at.Sub(last))
		}
		last = h.at
	}
	return longest
}

// checked sends a few more packets: all of them come, or none where the guest is in another segment.
func (g *ground) checked(ctx context.Context, m *reassigned, apart bool) error {
	sink, err := traffic.Listen(traffic.Endpoint{NS: g.outside}, traffic.SinkOptions{Kind: traffic.KindUDP,
		At: addrPort(outsideIP, 0)})
	if err != nil {
		return err
	}
	sent, err := traffic.Send(ctx, traffic.Endpoint{NS: g.guest}, traffic.Load{Kind: traffic.KindUDP, Rate: 1000,
		Duration: 50 * time.Millisecond}, sink.Addr())
	res, errSink := sink.Finish()
	g.ear.told()
	if err := errors.Join(err, errSink); err != nil {
		return err
	}
	var want, got uint64
	if !apart {
		want = sent.Sent.Packets
	}
	if res.Packets != nil {
		got = res.Packets.Received
	}
	m.wrong += max(want, got) - min(want, got)
	return nil
}

// plus adds counts.
func plus(a, b traffic.Received) traffic.Received {
	a.Sent, a.Received, a.Lost, a.Overflowed = a.Sent+b.Sent, a.Received+b.Received, a.Lost+b.Lost,
		a.Overflowed+b.Overflowed
	a.Duplicated, a.Reordered = a.Duplicated+b.Duplicated, a.Reordered+b.Reordered
	return a
}

// settled waits until the host has announced what the move before changed.
func (g *ground) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		st, err := g.lab.Agent("esx1").State(ctx)
		if err == nil && st.Agent.Announcing == 0 {
			return nil
		}
		if pause(ctx, lookEvery) != nil {
			return errors.Join(errors.New("the host goes on announcing"), err)
		}
	}
}

// streams sends numbered packets each way while do runs.
func (g *ground) streams(ctx context.Context, do func() error) (out, in traffic.Received, err error) {
	sending, stop := context.WithCancel(ctx)
	defer stop()
	sent := make(chan error, 2)
	var sinks [2]*traffic.Sink
	ends := []struct {
		from, to *netns.NS
		at       string
	}{{g.guest, g.outside, outsideIP}, {g.outside, g.guest, guestIP}}
	for i, e := range ends {
		sinks[i], err = traffic.Listen(traffic.Endpoint{NS: e.to}, traffic.SinkOptions{Kind: traffic.KindUDP,
			At: addrPort(e.at, 0), Stamped: true})
		if err != nil {
			return out, in, err
		}
		go func() {
			_, err := traffic.Send(sending, traffic.Endpoint{NS: e.from}, traffic.Load{Kind: traffic.KindUDP,
				Rate: g.effort.rate}, sinks[i].Addr())
			sent <- err
		}()
	}
	err = do()
	stop()
	errs := []error{err, <-sent, <-sent}
	for i, into := range []*traffic.Received{&out, &in} {
		res, err := sinks[i].Finish()
		if errs = append(errs, err); res.Packets != nil {
			*into = *res.Packets
		}
	}
	return out, in, errors.Join(errs...)
}

// reassignReport makes the report of the results.
func reassignReport(all []reassigned, e effort) *report.Report {
	r := &report.Report{Name: PortMoveName, Environment: report.Collect(time.Now()),
		Explained: "reference/migration.md", Labs: topology.OfText(portMoveText)}
	for i := range all {
		r.Rows = append(r.Rows, all[i].fields())
		r.Budgets = append(r.Budgets, all[i].budgets()...)
	}
	r.Notes = []string{
		fmt.Sprintf("%.0f numbered packets a second each way, while a controller is asked to move the port there "+
			"and back.", e.rate),
		"gap out, gap in: the longest silence of the packets from and to the guest, which on a busy machine is that " +
			"of their sender: compare with the row \"still\". returned: until the controller has answered. wrong: of " +
			"the packets that are sent after the answer, those that reached the segment that the guest had left, or " +
			"did not reach the one that it is in. What the guest of the row \"segment\" sends is heard at the " +
			"uplink, and packets to it are not counted: their sender stays in the first segment.",
	}
	return r
}

func (m *reassigned) fields() report.Row {
	var gapIn, lostOut, lostIn any
	if !m.row.leaves {
		gapIn, lostOut, lostIn = report.Summarise(m.gapIn), lost(m.out), lost(m.in)
	}
	return report.Row{
		{Name: "name", Title: "row", Value: m.row.name},
		{Name: "setting", Value: m.row.setting, Hidden: true},
		{Name: "moves", Value: len(m.gapOut), Unit: report.Count},
		{Name: "gap_out_s", Title: "gap out", Unit: report.Seconds, Value: report.Summarise(m.gapOut)},
		{Name: "gap_in_s", Title: "gap in", Unit: report.Seconds, Value: gapIn},
		{Name: "returned_s", Title: "returned", Unit: report.Seconds, Brief: true,
			Value: report.Summarise(m.returned)},
		{Name: "sent", Unit: report.Count, Value: m.out.Sent + m.in.Sent + m.heard},
		{Name: "lost_out", Title: "lost", Unit: report.Count, Value: lostOut},
		{Name: "lost_in", Title: "in", Unit: report.Count, Value: lostIn},
		{Name: "duplicated", Title: "dup", Unit: report.Count, Value: m.out.Duplicated + m.in.Duplicated},
		{Name: "reordered", Title: "reord", Unit: report.Count, Value: m.out.Reordered + m.in.Reordered},
		{Name: "wrong", Unit: report.Count, Value: m.wrong},
	}
}

func (m *reassigned) budgets() []report.Budget {
	if m.row.to == (place{}) {
		return nil
	}
	name := func(what string) string { return m.row.name + ": " + what }
	list := []report.Budget{
		report.Hold(name("gap out"), report.Summarise(m.gapOut).Median, report.Seconds, report.AtMost, PortMoveBudget),
		report.Hold(name("duplicated"), float64(m.out.Duplicated+m.in.Duplicated), report.Count, report.Exactly, 0),
	}
	list = append(list, report.Hold(name("wrong segment"), float64(m.wrong), report.Count, report.Exactly, 0))
	if m.row.leaves {
		return list
	}
	return append(list, report.Hold(name("gap in"), report.Summarise(m.gapIn).Median, report.Seconds, report.AtMost,
		PortMoveBudget))
}
