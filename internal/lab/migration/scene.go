package migration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"

	"heddle/internal/lab"
	"heddle/internal/lab/adapters"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/scenario"
)

// The nodes of the lab.
const (
	guest   = "guest"
	outside = "outside"
	tor     = "tor"
	middle  = "valve"
	// peer takes the place of outside on the overlay segment, transport that of tor.
	peer      = "peer"
	transport = "transport"
)

// The ends of the traffic.
const (
	guestMAC    = "02:00:00:00:05:01"
	guestIP     = "10.7.0.1"
	outsideMAC  = "02:00:00:00:05:09"
	outsideIP   = "10.7.0.9"
	guestDevice = "eth0"
)

// labText is the scenario: two Heddle hosts and two hosts with a Linux bridge each, at one physical switch. The guest
// is behind the valve, which has a device on the hosts that it moves between. The Heddle hosts and a third one with a
// guest of its own, which has the address of what is outside, have an overlay segment over another physical switch.
const labText = `
#            guest
#              |
#            valve
#      /     |      |     \
#   esx1   esx2   br1    br2
#      \     |      |     /
#             tor ──────────── outside
#   esx1   esx2   esx3 ── peer
#      \     |      /
#         transport
name: migration
title: a guest that moves from host to host
controllers:
  - {name: ctl1, addresses: [10.20.0.1/24]}
definition:
  switches:
    - name: prod
      kind: distributed
      uplinks: [{name: uplink1}]
      portGroups:
        - {name: vms, vlan: {none: true}}
    - name: overlay
      kind: distributed
      tunnel: {endpoints: [{device: vmk1}]}
      portGroups:
        - {name: segment, overlay: {vni: 5000}}
  templates:
    - name: one-uplink
      switches:
        - name: prod
          uplinks: [{name: uplink1, device: eno1}]
        - name: overlay
hosts:
  - name: esx1
    config:
      switches:
        - name: management
          kind: standard
          uplinks: [{name: uplink1, device: mgmt0}]
          portGroups: [{name: hosts}]
        - name: transport
          kind: standard
          mtu: 1600
          uplinks: [{name: uplink1, device: eno2}]
          portGroups: [{name: tunnels}]
      ports:
        - {name: vmk0, switch: management, portGroup: hosts, role: host, device: vmk0, addresses: [10.20.0.11/24]}
        - {name: vmk1, switch: transport, portGroup: tunnels, role: host, device: vmk1, addresses: [10.30.0.11/24]}
  - name: esx2
    config:
      switches:
        - name: management
          kind: standard
          uplinks: [{name: uplink1, device: mgmt0}]
          portGroups: [{name: hosts}]
        - name: transport
          kind: standard
          mtu: 1600
          uplinks: [{name: uplink1, device: eno2}]
          portGroups: [{name: tunnels}]
      ports:
        - {name: vmk0, switch: management, portGroup: hosts, role: host, device: vmk0, addresses: [10.20.0.12/24]}
        - {name: vmk1, switch: transport, portGroup: tunnels, role: host, device: vmk1, addresses: [10.30.0.12/24]}
  - name: esx3
    config:
      switches:
        - name: management
          kind: standard
          uplinks: [{name: uplink1, device: mgmt0}]
          portGroups: [{name: hosts}]
        - name: transport
          kind: standard
          mtu: 1600
          uplinks: [{name: uplink1, device: eno2}]
          portGroups: [{name: tunnels}]
      ports:
        - {name: vmk0, switch: management, portGroup: hosts, role: host, device: vmk0, addresses: [10.20.0.13/24]}
        - {name: vmk1, switch: transport, portGroup: tunnels, role: host, device: vmk1, addresses: [10.30.0.13/24]}
vms:
  - {name: peer, host: esx3, switch: overlay, portGroup: segment, mac: "02:00:00:00:05:09", addresses: [10.7.0.9/24]}
switches:
  - {name: management}
  - {name: tor}
  - {name: transport}
  - {name: valve}
  - {name: br1}
  - {name: br2}
routers:
  - {name: guest, interfaces: [{device: eth0, mac: "02:00:00:00:05:01", addresses: [10.7.0.1/24]}]}
  - {name: outside, interfaces: [{device: eth0, mac: "02:00:00:00:05:09", addresses: [10.7.0.9/24]}]}
links:
  - {a: esx1/mgmt0, b: management/h1}
  - {a: esx2/mgmt0, b: management/h2}
  - {a: esx3/mgmt0, b: management/h3}
  - {a: ctl1/eth0, b: management/c1}
  - {a: esx1/eno1, b: tor/esx1}
  - {a: esx2/eno1, b: tor/esx2}
  - {a: esx3/eno1, b: tor/esx3}
  - {a: esx1/eno2, b: transport/esx1, mtu: 1600}
  - {a: esx2/eno2, b: transport/esx2, mtu: 1600}
  - {a: esx3/eno2, b: transport/esx3, mtu: 1600}
  - {a: br1/up, b: tor/br1}
  - {a: br2/up, b: tor/br2}
  - {a: outside/eth0, b: tor/outside}
  - {a: guest/eth0, b: valve/guest}
`

// scene is the running lab.
type scene struct {
	lab   *lab.Lab
	nodes map[string]*netns.NS
	valve *valve
	// own are the frames of the guest's adapter, by what the guest itself has sent.
	own    *tap
	mac    net.HardwareAddr
	guest  int // the number of the device towards the guest
	effort effort
	moved  int // all moves so far: devices are named after it
}

// LabName is the name of the lab that this process builds.
func LabName() string { return fmt.Sprintf("mi%d", os.Getpid()) }

// build makes the lab, and the valve in its middle.
func build(ctx context.Context, o Options) (_ *scene, err error) {
	sc, err := scenario.Parse(Name+".yaml", []byte(labText), nil)
	if err != nil {
		return nil, err
	}
	mac, err := net.ParseMAC(guestMAC)
	if err != nil {
		return nil, err
	}
	l, err := lab.Build(ctx, sc, lab.Options{Name: LabName(), RunDir: o.RunDir,
		Program: o.Program, Progress: o.say})
	if err != nil {
		return nil, err
	}
	s := &scene{lab: l, nodes: map[string]*netns.NS{}, mac: mac, effort: o.effort()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	for _, n := range l.Nodes {
		if s.nodes[n.Name], err = l.NS(n.Name); err != nil {
			return nil, err
		}
	}
	if err := s.ends(); err != nil {
		return nil, err
	}
	if s.valve, err = newValve(); err != nil {
		return nil, err
	}
	s.own, s.guest, err = s.valve.attach(s.nodes[middle], guest, s.valve.fromGuest)
	return s, err
}

// ends prepares the two ends: they know each other's address, so that none is asked for while frames are counted, and
// their frames are as long on the way as on a wire, so that every count means the same.
func (s *scene) ends() error {
	for _, e := range []struct{ node, otherIP, otherMAC string }{
		{guest, outsideIP, outsideMAC}, {outside, guestIP, guestMAC}, {peer, guestIP, guestMAC},
	} {
		err := s.nodes[e.node].Do(func() error {
			mac, err := net.ParseMAC(e.otherMAC)
			if err != nil {
				return err
			}
			l, err := netlink.LinkByName(guestDevice)
			if err != nil {
				return err
			}
			err = netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT,
				IP: net.ParseIP(e.otherIP), HardwareAddr: mac})
			if err != nil {
				return err
			}
			_, err = adapters.SetOffloads(guestDevice, false)
			return err
		})
		if err != nil {
			return fmt.Errorf("prepare %s: %w", e.node, err)
		}
	}
	return nil
}

func (s *scene) close() error {
	var err error
	if s.valve != nil {
		err = s.valve.close()
	}
	return errors.Join(err, s.lab.Down())
}

// plug makes the guest's device on a host, with its other end in the valve. Nothing comes to the guest by it until the
// guest runs there.
func (s *scene) plug(node, device string, host int) (*tap, error) {
	inside := fmt.Sprintf("to%d-%d", host, s.moved)
	h, err := s.nodes[middle].Handle()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	err = s.nodes[node].Do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = device
		v := netlink.NewVeth(attrs)
		v.PeerName, v.PeerNamespace = inside, netlink.NsFd(h)
		v.PeerHardwareAddr = s.mac // what the host can see of the guest's adapter
		if err := netlink.LinkAdd(v); err != nil {
			return fmt.Errorf("make device %s: %w", device, err)
		}
		return netlink.LinkSetUp(v)
	})
	if err != nil {
		return nil, err
	}
	err = s.nodes[middle].Do(func() error {
		l, err := netlink.LinkByName(inside)
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(l)
	})
	if err != nil {
		return nil, err
	}
	t, index, err := s.valve.attach(s.nodes[middle], inside, s.valve.toGuest(host, s.guest))
	if err != nil {
		return nil, err
	}
	return t, s.valve.leads(host, index)
}

// unplug removes the guest's device from a host.
func (s *scene) unplug(node, device string) error {
	return s.nodes[node].Do(func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	})
}

func addrPort(ip string, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(ip), port)
}
