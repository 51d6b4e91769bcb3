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
