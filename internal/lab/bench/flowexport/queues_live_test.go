package flowexport

import (
	"context"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/lab/multiqueue"
	"heddle/internal/lab/traffic"
	"heddle/internal/test/testkit"
)

// passage is what has passed by the senders' port and the sinks' port, from the first to the last count on the way.
type passage struct {
	read    uint64                 // frames that were taken from the sender's own adapter, or dropped there
	sent    [2]uint64              // by its queues, and by its port
	handed  [2]uint64              // by the sink's port, and by its queues and what its tap dropped
	by      [2][]multiqueue.Counts // queues of the sender, of the sink
	ports   uint64                 // by all ports of both hosts, in and out
	metered uint64
	noRoom  uint64
}

func (p passage) minus(q passage) passage {
	d := passage{read: p.read - q.read, ports: p.ports - q.ports, metered: p.metered - q.metered,
		noRoom: p.noRoom - q.noRoom}
	for i := range p.sent {
		d.sent[i], d.handed[i] = p.sent[i]-q.sent[i], p.handed[i]-q.handed[i]
		for k := range p.by[i] {
			d.by[i] = append(d.by[i], multiqueue.Counts{ToVM: p.by[i][k].ToVM - q.by[i][k].ToVM,
				FromVM: p.by[i][k].FromVM - q.by[i][k].FromVM})
		}
	}
	return d
}

// TestEveryPacketOfEveryQueueIsMetered: packets of many flows come over all queues of the sender's and of the sink's
// tap, and the hosts meter exactly what their ports count, which are exactly those of all queues.
func TestEveryPacketOfEveryQueueIsMetered(t *testing.T) {
	r := queuesRig(t)
	for _, m := range []metering{uni, bi} {
		t.Run(string(m), func(t *testing.T) {
			if err := r.meter(t.Context(), m, true); err != nil {
				t.Fatal(err)
			}
			before := r.look(t)
			load := traffic.Load{Kind: traffic.KindUDP, Flows: 64, Rate: 20000, Duration: 500 * time.Millisecond}
			res, err := traffic.Measure(t.Context(), r.pair(1, nil, nil), load)
			if err != nil {
				t.Fatal(err)
			}
			total := res.Sent.Packets + traffic.EndMarks
			var got passage
			for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
				got = r.look(t).minus(before)
				if got.read == total && got.sent[0] == got.sent[1] && got.handed[0] == got.handed[1] &&
					got.metered == got.ports {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("of %d packets: %+v", total, got)
				}
			}
			// Once more, when nothing is left that could be exported: nothing was metered twice.
			if err := r.meter(t.Context(), off, true); err != nil {
				t.Fatal(err)
			}
			if end := r.look(t).minus(before); end.metered != got.metered || end.noRoom != 0 {
				t.Errorf("%d packets were metered, and at the end %d; %d found no room", got.metered, end.metered,
					end.noRoom)
			}
			for i := range got.by[tx] {
				if got.by[tx][i].FromVM == 0 || got.by[rx][i].ToVM == 0 {
					t.Errorf("queue %d was not used: sent %+v, received %+v", i, got.by[tx], got.by[rx])
				}
			}
		})
	}
}

// queuesRig is the lab with a pair of VMs of four queues, whose ARP is settled: nothing but the load passes.
func queuesRig(t *testing.T) *rig {
	t.Helper()
	testkit.Root(t)
	testkit.Weigh(t, 3)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := withQueues(4)
	o.Adapters, o.Loads, o.Heddle = []string{string(tap)}, []string{"udp-18"}, self
	r, _ := rigOf(t, t.Context(), o)
	for _, s := range sides {
		r.know(t, s, 1-s)
	}
	return r
}

// rigOf is the lab for the options, which goes with the test.
func rigOf(t *testing.T, ctx context.Context, o Options) (*rig, []cell) {
	t.Helper()
	o.RunDir = t.TempDir()
	cells, err := o.cells()
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleetOf(cells)
	if err != nil {
		t.Fatal(err)
	}
	r, err := build(ctx, o, f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	return r, cells
}

// know gives a VM its partner's MAC for good.
func (r *rig) know(t *testing.T, s, partner side) {
	t.Helper()
	mac, err := net.ParseMAC(partner.mac(1))
	if err == nil {
		err = r.vms[s][1].Do(func() error {
			l, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			return netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT,
				IP: netip.MustParseAddr(partner.address(1, 0)).AsSlice(), HardwareAddr: mac})
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// look reads all counts on the way, the last of them first: what passes meanwhile is missing in none of a later one.
func (r *rig) look(t *testing.T) passage {
	t.Helper()
	p := r.books(t)
	var err error
	for _, s := range sides {
		if p.by[s], err = r.lab.Queues(s.vm(1)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range p.by[tx] {
		p.sent[0] += p.by[tx][i].FromVM
		p.handed[1] += p.by[rx][i].ToVM + p.by[rx][i].RefusedToVM
	}
	p.handed[1] += r.dropped(t, rx)
	link, err := r.counters[tx][1].handle.LinkByIndex(r.counters[tx][1].index)
	if err != nil {
		t.Fatal(err)
	}
	p.read = link.Attrs().Statistics.TxPackets + link.Attrs().Statistics.TxDropped
	return p
}

// books reads what was metered, and then what the ports have counted.
func (r *rig) books(t *testing.T) (p passage) {
	t.Helper()
	a, err := r.accounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.metered, p.noRoom = a.packets, a.noRoom
	for _, s := range sides {
		for _, port := range r.ports(t, s) {
			var in, out uint64
			for _, to := range []string{"Unicast", "Multicast", "Broadcast"} {
				in, out = in+counter(t, port, "packetsIn"+to), out+counter(t, port, "packetsOut"+to)
			}
			p.ports += in + out
			switch port.Name {
			case tx.vm(1):
				p.sent[1] = in
			case rx.vm(1):
				p.handed[0] = out
			}
		}
	}
	return p
}

// dropped is what the tap of a VM has dropped because nobody read.
func (r *rig) dropped(t *testing.T, s side) (n uint64) {
	t.Helper()
	err := r.hosts[s].Do(func() error {
		l, err := netlink.LinkByName(s.device(1))
		if err == nil {
			n = l.Attrs().Statistics.TxDropped
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ports are the counters of a host's ports.
func (r *rig) ports(t *testing.T, s side) (ports []api.Stats) {
	t.Helper()
	all, err := r.agents[s].Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if !p.Uplink {
			ports = append(ports, p)
		}
	}
	return ports
}

func counter(t *testing.T, port api.Stats, name string) uint64 {
	t.Helper()
	for _, c := range port.Counters {
		if c.Name == name {
			return c.Value
		}
	}
	t.Fatalf("port %s has no counter %s", port.Name, name)
	return 0
}
