package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/scenario"
)

// downTime limits how long removing an interrupted or failed lab may take.
const downTime = 15 * time.Second

// Options say how a lab is built.
type Options struct {
	// Name is the lab's name; empty: the scenario's.
	Name string
	// RunDir is the directory for what lives until the next boot; the lab's record is RunDir/lab/NAME.json.
	RunDir string
	// Program is the heddle program that hosts run as their agent; empty: the running program.
	Program string
	// Progress, when set, is called with a few words about what is being done now.
	Progress func(string)
	// Env is added to the environment of agents and kept guests, as NAME=VALUE.
	Env []string
}

// Lab is a lab that runs.
type Lab struct {
	*Record
	Scenario *scenario.Scenario
	runDir   string
	ns       map[string]*netns.NS
	// processes are the agents and kept guests by node; only known to the process that built the lab.
	processes map[string]*process
	opts      Options
}

// Build makes a lab and returns when everything in it is ready: every agent serves, and every connected port is up. If
// that fails, or ctx ends on the way, everything made so far is removed again.
func Build(ctx context.Context, s *scenario.Scenario, o Options) (*Lab, error) {
	l, err := prepare(s, o)
	if err != nil {
		return nil, err
	}
	if err := l.build(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("build lab %q: %w", l.Name, err), l.Down())
	}
	return l, nil
}

// prepare writes the record of the lab that will be built.
func prepare(s *scenario.Scenario, o Options) (*Lab, error) {
	if o.Name == "" {
		o.Name = s.Name
	}
	if o.Program == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the heddle program: %w", err)
		}
		o.Program = self
	}
	if !scenario.ValidName(o.Name) {
		return nil, fmt.Errorf("%q is not a name for a lab; use up to 31 lower-case letters, digits and dashes", o.Name)
	}
	r := &Record{
		Name: o.Name, Scenario: s.Name, State: Building, Since: time.Now().UTC().Truncate(time.Second),
		Dir: filepath.Join(recordDir(o.RunDir), o.Name),
	}
	r.Nodes = r.nodes(s)
	if _, err := Find(o.RunDir, r.Name); err == nil {
		return nil, r.taken()
	}
	for _, n := range r.Nodes {
		if _, err := os.Stat(filepath.Join(netnsDir, n.Namespace)); n.Namespace != "" && err == nil {
			return nil, fmt.Errorf("network namespace %q exists already and may belong to somebody else; give the "+
				"lab another name, or remove it with: ip netns del %s", n.Namespace, n.Namespace)
		}
	}
	if err := r.create(o.RunDir); err != nil {
		return nil, err
	}
	return &Lab{
		Record: r, Scenario: s, runDir: o.RunDir, opts: o,
		ns: map[string]*netns.NS{}, processes: map[string]*process{},
	}, nil
}

// nodes lists everything in the scenario that gets a namespace or is a machine.
func (r *Record) nodes(s *scenario.Scenario) []Node {
	var all []Node
	add := func(name string, kind NodeKind, agent bool, addresses []netip.Prefix) {
		n := Node{Name: name, Kind: kind, Agent: agent, Namespace: r.namespaceOf(name), Addresses: []string{}}
		for _, a := range addresses {
			n.Addresses = append(n.Addresses, a.String())
		}
		all = append(all, n)
	}
	for _, h := range s.Hosts {
		add(h.Name, NodeHost, true, h.Addresses())
	}
	for _, v := range s.VMs {
		add(v.Name, NodeVM, false, v.Addresses)
		if v.Kind == scenario.QEMU {
			all[len(all)-1].Namespace = ""
		}
	}
	for _, sw := range s.Switches {
		add(sw.Name, NodeSwitch, sw.Kind == scenario.Heddle, nil)
	}
	for _, rt := range s.Routers {
		add(rt.Name, NodeRouter, false, rt.Addresses())
	}
	for _, k := range s.Controllers {
		add(k.Name, NodeController, false, k.Addresses)
	}
	return all
}

// build makes everything, devices before the agents that look for them.
func (l *Lab) build(ctx context.Context) error {
	type step struct {
		what string
		do   func(context.Context) error
	}
	steps := []step{
		{"making namespaces", l.makeNamespaces},
		{"plugging in adapters", l.makeAdapters},
		{"laying cables", l.makeLinks},
		{"starting agents", l.startAgents},
	}
	if len(l.Scenario.Controllers) > 0 {
		steps = append(steps, step{"starting controllers", l.startControllers}, step{"joining hosts", l.joinHosts})
	}
	steps = append(steps, step{"starting guests", l.startGuests}, step{"starting adapters", l.startAdapters},
		step{"waiting for agents and ports", l.awaitReady})
	for _, s := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.progress(s.what)
		if err := s.do(ctx); err != nil {
			return err
		}
	}
	l.State = Up
	return l.save(l.runDir)
}

func (l *Lab) progress(what string) {
	if l.opts.Progress != nil {
		l.opts.Progress(what)
	}
}

// Down removes the lab. It also works when the context under which the lab was built has ended.
func (l *Lab) Down() error {
	ctx, cancel := context.WithTimeout(context.Background(), downTime)
	defer cancel()
	return Down(ctx, l.runDir, l.Name)
}

// NS is the namespace of a node.
func (l *Lab) NS(node string) (*netns.NS, error) {
	ns, ok := l.ns[node]
	if !ok {
		return nil, fmt.Errorf("lab %q has no namespace for a node %q", l.Name, node)
	}
	return ns, nil
}

func (l *Lab) makeNamespaces(context.Context) error {
	for _, n := range l.Nodes {
		if n.Namespace == "" {
			continue
		}
		ns, err := netns.New(n.Namespace)
		if err != nil {
			return err
		}
		l.ns[n.Name] = ns
		if err := settle(ns, n); err != nil {
			return err
		}
	}
	return nil
}

// settle sets the kernel parameters of a new namespace.
func settle(ns *netns.NS, n Node) error {
	v6 := hasIPv6(n.Addresses)
	set := map[string]string{}
	if !v6 {
		// IPv6 is off on a node without IPv6 addresses, because frames of its neighbour discovery would be counted.
		set["ipv6/conf/all/disable_ipv6"], set["ipv6/conf/default/disable_ipv6"] = "1", "1"
	}
	if n.Kind == NodeRouter {
		set["ipv4/ip_forward"] = "1"
		if v6 {
			set["ipv6/conf/all/forwarding"] = "1"
		}
	}
	for path, value := range set {
		// A kernel without IPv6 has no parameters for it.
		if err := sysctl(ns, path, value); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func hasIPv6(addresses []string) bool {
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a); err == nil && p.Addr().Is6() {
			return true
		}
	}
	return false
}

// makeAdapters connects VMs and nested hosts to the devices of their ports.
func (l *Lab) makeAdapters(context.Context) error {
	for _, h := range l.Scenario.Hosts {
		for _, n := range h.NICs {
			port := scenario.Port(l.Scenario.Host(n.Host).Config, n.Port)
			err := cable(end{ns: l.ns[n.Host], device: port.Device}, end{ns: l.ns[h.Name], device: n.Device,
				mac: n.MAC}, n.MTU)
			if err != nil {
				return err
			}
		}
	}
	for i := range l.Scenario.VMs {
		v := &l.Scenario.VMs[i]
		if v.Kind == scenario.QEMU {
			continue // its adapter is made with the machine
		}
		if err := l.makeAdapter(v); err != nil {
			return err
		}
		if err := address(l.ns[v.Name], guestDevice, v.Addresses, v.Gateway); err != nil {
			return err
		}
	}
	return l.plugRouters()
}

// makeAdapter connects a VM that is a namespace to the device of its port.
func (l *Lab) makeAdapter(v *scenario.VM) error {
	if v.Queues > 0 {
		return l.makeQueues(v)
	}
	return cable(end{ns: l.ns[v.Host], device: l.Scenario.DeviceOf(v)}, end{ns: l.ns[v.Name], device: guestDevice,
		mac: v.MAC}, v.MTU)
}

// plugRouters connects the interfaces of routers that are on ports of hosts.
func (l *Lab) plugRouters() error {
	for _, r := range l.Scenario.Routers {
		for _, f := range r.Interfaces {
			if !f.OnPort() {
				continue
			}
			port := scenario.Port(l.Scenario.Host(f.Host).Config, f.Port)
			err := cable(end{ns: l.ns[f.Host], device: port.Device}, end{ns: l.ns[r.Name], device: f.Device,
				mac: f.MAC}, f.MTU)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// guestDevice is the name of a VM's only adapter inside the VM.
const guestDevice = "eth0"

// makeLinks lays the cables of the physical network and puts the bridges in their middle.
func (l *Lab) makeLinks(context.Context) error {
	bridged := map[string][]string{}
	for _, k := range l.Scenario.Links {
		a, b := l.plug(k.A), l.plug(k.B)
		if err := cable(a, b, k.MTU); err != nil {
			return err
		}
		for _, e := range []end{a, b} {
			if k.Rate == 0 {
				continue
			}
			if err := shape(e.ns, e.device, k.Rate); err != nil {
				return err
			}
		}
		for _, e := range []scenario.End{k.A, k.B} {
			bridged[e.Node] = append(bridged[e.Node], e.Device)
		}
	}
	for _, sw := range l.Scenario.Switches {
		if sw.Kind != scenario.Bridge {
			continue
		}
		if err := bridge(l.ns[sw.Name], bridgeDevice, bridged[sw.Name]); err != nil {
			return err
		}
	}
	for _, k := range l.Scenario.Controllers {
		if err := address(l.ns[k.Name], scenario.ControllerDevice, k.Addresses, netip.Addr{}); err != nil {
			return err
		}
	}
	for _, r := range l.Scenario.Routers {
		for _, f := range r.Interfaces {
			if err := address(l.ns[r.Name], f.Device, f.Addresses, netip.Addr{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// bridgeDevice is the name of the bridge inside the namespace of its switch.
const bridgeDevice = "bridge0"

func (l *Lab) plug(e scenario.End) end {
	mac := l.Scenario.LinkMAC(e)
	return end{ns: l.ns[e.Node], device: e.Device, mac: mac}
}
