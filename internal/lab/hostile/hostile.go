package hostile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/lab"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/scenario"
	"heddle/internal/lab/traffic"
)

// Name is the experiment's name, Title what it shows.
const (
	Name  = "hostile-neighbour"
	Title = "what two VMs notice of a third one that floods (real traffic only)"
)

// The nodes of the lab.
const (
	host      = "esx1"
	client    = "a" // a and b are the victims
	server    = "b"
	neighbour = "c" // floods
	partner   = "d" // the well-behaved neighbour sends to it
	nest      = "n" // has stations behind it, whose entries must stay
)

// guestDevice is the name of a VM's only adapter inside the VM.
const guestDevice = "eth0"

// serverAddress is b's.
const serverAddress = "192.0.2.2"

// What the neighbour's port groups allow: learned addresses, frames per second of storm control, and its burst.
const (
	macLimit   = 64
	stormRate  = 1000
	stormBurst = 500 * time.Millisecond
	stations   = 32 // behind n
)

// labFile is the lab. The victims' ports learn and flood, so that unknown unicast reaches them: the hardest case.
const labFile = `
name: hostile-neighbour
title: one VM floods while two others talk
hosts:
  - name: esx1
    config:
      switches:
        - name: lab
          kind: distributed
          uplinks: [{name: uplink1, device: eno1}]
          defaults:
            vlan: {access: 10}
            security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 64, limitPolicy: drop}}
          portGroups:
            - {name: open}
            - {name: limited, stormControl: {broadcast: 1000, multicast: 1000, unknownUnicast: 1000, burst: 500ms}}
      ports:
        - {name: a, switch: lab, portGroup: open, device: vm-a}
        - {name: b, switch: lab, portGroup: open, device: vm-b}
        - {name: c, switch: lab, portGroup: open, device: vm-c}
        - {name: d, switch: lab, portGroup: open, device: vm-d}
        - {name: n, switch: lab, portGroup: open, device: vm-n}
vms:
  - {name: a, host: esx1, addresses: [192.0.2.1/24]}
  - {name: b, host: esx1, addresses: [192.0.2.2/24]}
  - {name: c, host: esx1}
  - {name: d, host: esx1}
  - {name: n, host: esx1}
switches:
  - {name: tor}
links:
  - {a: esx1/eno1, b: tor/p1}
`

// Options say how the experiment runs.
type Options struct {
	// RunDir and Program are those of lab.Options.
	RunDir, Program string
	// Quick takes fewer rounds.
	Quick bool
	// Rows selects rows by name; empty: all.
	Rows []string
	// Progress, when set, is called with what is being done now.
	Progress func(string)
}

// effort is how much is measured: many short turns, because other work of a machine comes and goes within seconds, and
// then affects both sides of a ratio.
type effort struct {
	rounds int
	each   time.Duration // of each measurement; a round has two turns of each neighbour with two measurements
	warmup time.Duration
	load   loader
}

// loader measures one load between two ends, as traffic.Measure does.
type loader func(context.Context, traffic.Pair, traffic.Load) (traffic.Result, error)

// effort makes the victims processes of their own: ends that share a Go runtime with the flood would wait for each
// other there.
func (o Options) effort() (effort, error) {
	program := o.Program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return effort{}, err
		}
	}
	load := traffic.Processes{Program: []string{program, "traffic"}}.Measure
	if o.Quick {
		return effort{rounds: 5, each: 80 * time.Millisecond, warmup: 30 * time.Millisecond, load: load}, nil
	}
	return effort{rounds: 20, each: 120 * time.Millisecond, warmup: 40 * time.Millisecond, load: load}, nil
}

// rig is the lab that is up.
type rig struct {
	effort
	agent *api.Client
	ns    map[string]*netns.NS
	to    net.HardwareAddr // the partner's
	// The victims have the first CPU and the neighbour the last one; with one CPU they share it.
	victims, loud []int
}

// Run measures the rows and returns the result of each, in their order. It leaves nothing behind, also when ctx ends on
// the way.
func Run(ctx context.Context, o Options) ([]Measured, error) {
	much, err := o.effort()
	if err != nil {
		return nil, err
	}
	return run(ctx, o, much)
}

func run(ctx context.Context, o Options, much effort) (_ []Measured, err error) {
	rows, err := chosen(o.Rows)
	if err != nil {
		return nil, err
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	s, err := scenario.Parse(Name+".yaml", []byte(labFile), nil)
	if err != nil {
		return nil, err
	}
	l, err := lab.Build(ctx, s, lab.Options{Name: fmt.Sprintf("hostile%d", os.Getpid()), RunDir: o.RunDir,
		Program: o.Program, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Down()) }()
	r := &rig{effort: much, agent: l.Agent(host), ns: map[string]*netns.NS{}, victims: []int{0},
		loud: []int{runtime.NumCPU() - 1}}
	for _, node := range []string{host, client, server, neighbour, partner, nest} {
		if r.ns[node], err = l.NS(node); err != nil {
			return nil, err
		}
	}
	if r.to, err = addressOf(r.ns[partner]); err != nil {
		return nil, err
	}
	return r.measure(ctx, rows, o.Progress)
}

func addressOf(ns *netns.NS) (mac net.HardwareAddr, err error) {
	err = ns.Do(func() error {
		l, err := netlink.LinkByName(guestDevice)
		if err == nil {
			mac = l.Attrs().HardwareAddr
		}
		return err
	})
	return mac, err
}

// settle moves the neighbour's port into a port group.
func (r *rig) settle(ctx context.Context, limited bool) error {
	group := "open"
	if limited {
		group = "limited"
	}
	_, err := r.agent.Move(ctx, api.Move{Port: neighbour, PortGroup: group})
	return err
}

// speak makes the stations behind n send until all are known.
func (r *rig) speak(ctx context.Context) error {
	for range 100 {
		f, err := traffic.StartFlood(traffic.Endpoint{NS: r.ns[nest], CPUs: r.victims}, traffic.Flood{
			Kind: traffic.RandomSource, Device: guestDevice, To: r.to, MinSize: 60, MaxSize: 60, Rate: 2000, Seed: 1})
		if err != nil {
			return err
		}
		for f.Sent() < stations && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		if err := errors.Join(f.Stop(), ctx.Err()); err != nil {
			return err
		}
		t, err := r.table(ctx)
		if err != nil {
			return err
		}
		if len(t.others) >= stations {
			return nil
		}
	}
	return errors.New("the switch does not learn the stations behind a port: this measures nothing")
}

// table is what the switch has learned.
type table struct {
	others map[string]string // port by VLAN and MAC, for all ports except the neighbour's
	held   int               // by the neighbour's port
}

func (r *rig) table(ctx context.Context) (table, error) {
	t := table{others: map[string]string{}}
	macs, err := r.agent.MACs(ctx)
	for _, m := range macs {
		switch {
		case m.Port == neighbour && m.Kind == "learned":
			t.held++
		case m.Port != neighbour:
			t.others[m.VLAN.String()+" "+m.MAC] = m.Port
		}
	}
	return t, err
}

// lost counts the entries of others that are gone or belong to another port.
func (t table) lost(later table) (n int) {
	for who, port := range t.others {
		if later.others[who] != port {
			n++
		}
	}
	return n
}
