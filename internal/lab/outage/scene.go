package outage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/lab"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/scenario"
	"heddle/internal/plan"
)

// The guests that are measured: the MAC of one is announced, the other's is not.
const (
	loud  = "loud"
	quiet = "quiet"
)

const (
	host, outside, far, rest = "esx1", "outside", "left", "rest"

	// readyTime is for machines that have much else to do: it costs nothing on others.
	readyTime = 5 * time.Minute
	lookEvery = 20 * time.Millisecond
)

// text is the scenario. The uplinks lead to two switches, and these to a third: when the link to one of the two is
// lost, the third one goes on sending there until it learns better. The measured guests are the last ports of the
// switch.
const text = `
#   loud  quiet  rest…
#      \    |    /
#        esx1            eno1 ── left ──┐
#                        eno2 ── right ─┴─ core ── outside
name: failover
title: what a guest notices when an uplink fails
hosts:
  - name: esx1
    config:
      switches:
        - name: lab
          upDelay: 100ms
          uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: eno2}]
          defaults: {teaming: {policy: explicit, active: [uplink1, uplink2]}}
          portGroups:
            - {name: plain, vlan: {none: true}}
            - {name: silent, vlan: {none: true}, teaming: {notifySwitches: false}}
      ports:
%s        - {name: quiet, switch: lab, portGroup: silent, device: vm-quiet, mac: "02:00:00:00:02:02"}
        - {name: loud, switch: lab, portGroup: plain, device: vm-loud, mac: "02:00:00:00:02:01"}
vms:
  - {name: loud, host: esx1, addresses: [10.7.0.1/24]}
  - {name: quiet, host: esx1, addresses: [10.7.0.2/24]}
switches:
  - {name: left}
  - {name: right}
  - {name: core}
routers:
  - {name: outside, interfaces: [{device: eth0, mac: "02:00:00:00:02:09", addresses: [10.7.0.9/24]}]}
  - {name: rest, interfaces: [{device: eth0, addresses: [10.8.0.1/24]}]}
links:
  - {a: esx1/eno1, b: left/down}
  - {a: esx1/eno2, b: right/down}
  - {a: left/up, b: core/left}
  - {a: right/up, b: core/right}
  - {a: outside/eth0, b: core/out}
  - {a: rest/eth0, b: core/rest}
`

// labText is the scenario with more ports, in YAML.
func labText(ports string) string { return fmt.Sprintf(text, ports) }

// addresses and MACs of the ends.
var ends = map[string]struct {
	ip  string
	mac plan.MAC
}{
	loud:    {"10.7.0.1", plan.MAC{2, 0, 0, 0, 2, 1}},
	quiet:   {"10.7.0.2", plan.MAC{2, 0, 0, 0, 2, 2}},
	outside: {"10.7.0.9", plan.MAC{2, 0, 0, 0, 2, 9}},
	probe:   {"10.7.0.3", plan.MAC{2, 0, 0, 0, 2, 3}},
	"a1":    {"10.7.0.11", plan.MAC{2, 0, 0, 0, 2, 0x11}},
	"a2":    {"10.7.0.12", plan.MAC{2, 0, 0, 0, 2, 0x12}},
	"a3":    {"10.7.0.13", plan.MAC{2, 0, 0, 0, 2, 0x13}},
}

// scene is a running lab with all its ports.
type scene struct {
	lab   *lab.Lab
	agent *api.Client
	nodes map[string]*netns.NS
	ports int
	seen  uint64 // the number of the last event that was read
}

// build makes a lab whose switch has that many ports, two of them the guests'.
func build(ctx context.Context, o Options, ports int) (*scene, error) {
	var more strings.Builder
	for i := range ports - 2 {
		fmt.Fprintf(&more, "        - {name: p%d, switch: lab, portGroup: plain, device: port%d, mac: "+
			"\"02:00:00:01:%02x:%02x\"}\n", i, i, i>>8, i&255)
	}
	sc, err := scenario.Parse("failover.yaml", []byte(labText(more.String())), nil)
	if err != nil {
		return nil, err
	}
	l, err := lab.Build(ctx, sc, lab.Options{Name: fmt.Sprintf("fo%d-%d", os.Getpid(), ports), RunDir: o.RunDir,
		Program:  o.Program,
		Progress: func(what string) { o.say(fmt.Sprintf("%d ports: %s", ports, what)) }})
	if err != nil {
		return nil, err
	}
	s := newScene(l, ports)
	o.say(fmt.Sprintf("connecting %d ports", ports))
	err = s.find(host, far, outside, rest, loud, quiet)
	if err == nil {
		err = s.connect(ports - 2)
	}
	if err == nil {
		err = s.resolve([2]string{loud, outside}, [2]string{quiet, outside}, [2]string{outside, loud},
			[2]string{outside, quiet})
	}
	if err == nil {
		err = s.await(ctx, "every port uses uplink1", func(st *api.State) bool {
			for _, p := range st.Ports {
				if p.State != api.Up || len(p.Uplinks) != 1 || p.Uplinks[0] != "uplink1" {
					return false
				}
			}
			return true
		})
	}
	if err != nil {
		return nil, errors.Join(err, l.Down())
	}
	return s, nil
}

func newScene(l *lab.Lab, ports int) *scene {
	return &scene{lab: l, agent: l.Agent(host), ports: ports, nodes: map[string]*netns.NS{}}
}

// find finds the namespaces of the nodes.
func (s *scene) find(nodes ...string) error {
	for _, n := range nodes {
		ns, err := s.lab.NS(n)
		if err != nil {
			return err
		}
		s.nodes[n] = ns
	}
	return nil
}

// connect makes the devices of the ports without a guest; their other ends are in one namespace.
func (s *scene) connect(n int) error {
	here, there := s.nodes[host], s.nodes[rest]
	h, err := there.Handle()
	if err != nil {
		return err
	}
	defer h.Close()
	err = here.Do(func() error {
		for i := range n {
			attrs := netlink.NewLinkAttrs()
			attrs.Name = fmt.Sprintf("port%d", i)
			v := netlink.NewVeth(attrs)
			v.PeerName, v.PeerNamespace = fmt.Sprintf("end%d", i), netlink.NsFd(h)
			if err := netlink.LinkAdd(v); err != nil {
				return fmt.Errorf("make device %s: %w", attrs.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return there.Do(func() error {
		for i := range n {
			if err := set(fmt.Sprintf("end%d", i), true); err != nil {
				return err
			}
		}
		return nil
	})
}

// resolve makes the address resolution of the ends permanent, so that no end sends requests while packets are counted.
func (s *scene) resolve(pairs ...[2]string) error {
	for _, pair := range pairs {
		to := ends[pair[1]]
		err := s.nodes[pair[0]].Do(func() error {
			l, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			return netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT,
				IP: net.ParseIP(to.ip), HardwareAddr: net.HardwareAddr(to.mac[:])})
		})
		if err != nil {
			return fmt.Errorf("%s: keep the address of %s: %w", pair[0], pair[1], err)
		}
	}
	return nil
}

// await polls the agent's state until ok accepts it.
func (s *scene) await(ctx context.Context, what string, ok func(*api.State) bool) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		st, err := s.agent.State(ctx)
		if err == nil && ok(st) {
			return nil
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("not within %v: %s", readyTime, what), err)
		}
	}
}

func set(device string, up bool) error {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find device %s: %w", device, err)
	}
	if up {
		return netlink.LinkSetUp(l)
	}
	return netlink.LinkSetDown(l)
}

// set sets a node's device up or down.
func (s *scene) set(node, device string, up bool) error {
	return s.nodes[node].Do(func() error { return set(device, up) })
}

func address(node string) netip.Addr { return netip.MustParseAddr(ends[node].ip) }
