package kerneltest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"

	"heddle/internal/dataplane"
	"heddle/internal/flow"
	"heddle/internal/plan"
)

// slot finds the place of a port or uplink.
func (r *meterRig) slot(name string) uint16 {
	r.t.Helper()
	for slot, p := range r.rec.Flows().Points() {
		if p.ID.Name == name {
			return slot
		}
	}
	r.t.Fatalf("no point %s", name)
	return 0
}

func (r *meterRig) observed(name string) dataplane.Observed {
	r.t.Helper()
	all, err := r.rec.Flows().Observed()
	if err != nil {
		r.t.Fatal(err)
	}
	return all[r.slot(name)]
}

func (r *meterRig) loss(name string) (l flow.Loss) {
	r.t.Helper()
	all, err := r.rec.Flows().Losses()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, x := range all {
		if x.Point == r.slot(name) {
			l = x
		}
	}
	return l
}

// gso gives a port a frame that the kernel holds whole for segmentation.
func (r *meterRig) gso(at string, frame []byte, size, segments uint32) {
	r.t.Helper()
	r.now += time.Millisecond
	got, err := r.rec.GSO(plan.PortID{Switch: "s", Name: at}, frame, size, segments, r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	if !got.Delivered {
		r.t.Fatalf("dropped: %v", got.Reason)
	}
}

func udpFrame(t *testing.T, port byte, n int) []byte {
	t.Helper()
	f := packet(t, v4, append([]gopacket.SerializableLayer{ip4(17)}, udp(n)...)...)
	f[34], f[35] = 0, port
	return f
}

// The VLAN of a flow is its segment at every point; bytes of frames are those at the point. A second tag is stepped
// over.
func TestD6_TagsOfMeteredFrames(t *testing.T) {
	r := newMeterRig(t, metered, "vm1 m", "vm2 t")
	f := udpFrame(t, 1, 100)
	r.frame("vm1", f)
	tagged := append(append(append([]byte{}, word("vm1")...), word("vm2")...), append(word("q5"), f[12:]...)...)
	r.frame("vm2", tagged)
	double := append(append(append([]byte{}, word("vm1")...), word("vm2")...),
		append(append(word("q5"), word("q77")...), f[12:]...)...)
	r.frame("vm2", double)
	arp := append(append(append([]byte{}, word("vm1")...), word("vm2")...), append(append(word("q5"), word("ad77")...),
		append([]byte{8, 6}, make([]byte, 40)...)...)...)
	r.frame("vm2", arp)
	r.expect(map[string]string{
		"in vm1 vlan 5 01>02 17 10.0.0.1.1>10.0.0.2.53":  "1 packets 128/142 bytes vm1>vm2 ttl 64-64 t 1-1",
		"out vm2 vlan 5 01>02 17 10.0.0.1.1>10.0.0.2.53": "1 packets 128/146 bytes vm1>vm2 ttl 64-64 t 1-1",
		"in vm2 vlan 5 02>01 17 10.0.0.1.1>10.0.0.2.53":  "2 packets 256/296 bytes vm2>vm1 ttl 64-64 t 2-3",
		"out vm1 vlan 5 02>01 17 10.0.0.1.1>10.0.0.2.53": "2 packets 256/288 bytes vm2>vm1 ttl 64-64 t 2-3",
		"in vm2 vlan 5 02>01 type 0806":                  "1 packets 40/62 bytes vm2>vm1 t 4-4",
		"out vm1 vlan 5 02>01 type 0806":                 "1 packets 40/58 bytes vm2>vm1 t 4-4",
	})
}

// A frame with several receivers is one flow at each of them, and has no way out where it came from.
func TestD6_FloodedFrames(t *testing.T) {
	r := newMeterRig(t, metered, "vm1 m", "vm2 m", "vm3 plain", "vm4 m")
	r.change("monitoring: {ipfix: false}}]", "monitoring: {ipfix: true}}]")
	f := udpFrame(t, 1, 100)
	copy(f, word("all"))
	r.frame("vm1", f)
	const counts = "1 packets 128/142 bytes "
	r.expect(map[string]string{
		"in vm1 vlan 5 01>ff:ff:ff:ff:ff:ff 17 10.0.0.1.1>10.0.0.2.53":  counts + "vm1> ttl 64-64 t 1-1",
		"out vm2 vlan 5 01>ff:ff:ff:ff:ff:ff 17 10.0.0.1.1>10.0.0.2.53": counts + "vm1>vm2 ttl 64-64 t 1-1",
		"out vm4 vlan 5 01>ff:ff:ff:ff:ff:ff 17 10.0.0.1.1>10.0.0.2.53": counts + "vm1>vm4 ttl 64-64 t 1-1",
		"out u1 vlan 5 01>ff:ff:ff:ff:ff:ff 17 10.0.0.1.1>10.0.0.2.53": "1 packets 128/146 bytes vm1>u1 ttl 64-64 t " +
			"1-1",
	})
}

// What an uplink's counters say is metered there: arrivals that are delivered, to the host's stack too; the host's own
// frames are not.
func TestD6_TheHostsOwnTraffic(t *testing.T) {
	r := newMeterRig(t, metered, "vm1 m", "vm2 plain")
	r.change("monitoring: {ipfix: false}}]", "monitoring: {ipfix: true}}]")
	r.facts[plan.PortID{Switch: "s", Name: "u1"}] = plan.Fact{Up: true, MTU: 9000, DeviceMAC: plan.MAC(word("dev1")),
		HostTraffic: true}
	if err := r.rec.SetPlan(r.plan, r.facts, r.now); err != nil {
		t.Fatal(err)
	}
	f := udpFrame(t, 1, 100)
	wire := func(dst, src string) []byte {
		return append(append(append([]byte{}, word(dst)...), word(src)...), append(word("q5"), f[12:]...)...)
	}
	r.frame("u1", wire("dev1", "ext1")) // for the host
	r.frame("u1", wire("vm1", "ext1"))
	up := append(append(append([]byte{}, word("dev1")...), word("vm1")...), f[12:]...)
	r.frame("vm1", up) // for the host
	r.now += 1e6
	if _, err := r.rec.FromHost(plan.PortID{Switch: "s", Name: "u1"}, wire("vm1", "dev1"), r.now); err != nil {
		t.Fatal(err)
	}
	const ip = " 17 10.0.0.1.1>10.0.0.2.53"
	r.expect(map[string]string{
		"in u1 vlan 5 0e:00:00:00:00:01>0a:00:00:00:00:01" + ip: "1 packets 128/146 bytes u1> ttl 64-64 t 1-1",
		"in u1 vlan 5 0e:00:00:00:00:01>01" + ip:                "1 packets 128/146 bytes u1>vm1 ttl 64-64 t 2-2",
		"out vm1 vlan 5 0e:00:00:00:00:01>01" + ip:              "1 packets 128/142 bytes u1>vm1 ttl 64-64 t 2-2",
		"in vm1 vlan 5 01>0a:00:00:00:00:01" + ip:               "1 packets 128/142 bytes vm1> ttl 64-64 t 3-3",
		"out vm1 vlan 5 0a:00:00:00:00:01>01" + ip:              "1 packets 128/142 bytes >vm1 ttl 64-64 t 4-4",
	})
}

// A frame that stands for several packets counts as those: each repeats the headers. With sampling each counts by
// itself.
func TestS66_FramesThatStandForSeveralPackets(t *testing.T) {
	r := newMeterRig(t, metered, "vm1 m", "vm2 plain")
	const in = "in vm1 vlan 5 01>02 17 10.0.0.1.1>10.0.0.2.53"
	for _, c := range []struct {
		what                    string
		payload, size, segments uint32
		want                    string
	}{
		{"three packets, the last shorter", 2500, 1000, 3, "3 packets 2584/2626 bytes"},
		{"whole packets", 3000, 1000, 3, "3 packets 3084/3126 bytes"},
		{"the kernel does not say how many", 2500, 1000, 0, "3 packets 2584/2626 bytes"},
		{"headers within are repeated as well", 2500, 900, 3, "3 packets 2584/2626 bytes"},
		{"more than the size gives", 2500, 1000, 5, "5 packets 2640/2710 bytes"},
		{"less", 2500, 1000, 2, "2 packets 2556/2584 bytes"},
		{"one", 500, 1000, 1, "1 packets 528/542 bytes"},
	} {
		t.Run(c.what, func(t *testing.T) {
			r.gso("vm1", udpFrame(t, 1, int(c.payload)), c.size, c.segments)
			ms := r.now.Milliseconds() - r.start.Milliseconds()
			if got := r.drained(); got[in] != fmt.Sprintf("%s vm1>vm2 ttl 64-64 t %d-%d", c.want, ms, ms) {
				t.Errorf("%s: %v", c.what, got)
			}
		})
	}
	r.change("uplinks:", "ipfix: {samplingRate: 2}\n  uplinks:")
	before := r.observed("vm1")
	var got []string
	r.gso("vm1", udpFrame(t, 1, 900), 500, 2)
	got = append(got, r.drained()[in])
	r.gso("vm1", udpFrame(t, 1, 500), 500, 1)
	got = append(got, r.drained()[in])
	r.gso("vm1", udpFrame(t, 1, 3250), 500, 7)
	got = append(got, r.drained()[in])
	if after := r.observed("vm1"); after[0]-before[0] != 10 || after[1] != 0 {
		t.Errorf("observed %v, before %v", after, before)
	}
	for i, w := range []string{"1 packets 528/542 bytes vm1>vm2", "", "3 packets 1334/1376 bytes vm1>vm2"} {
		if len(w) > len(got[i]) || got[i][:len(w)] != w {
			t.Errorf("sampled frame %d: %q, want %q", i, got[i], w)
		}
	}
}

// One packet of N + 1 is metered, at each point and in each direction for itself.
func TestS66_OnePacketOfNPlusOneIsMetered(t *testing.T) {
	for _, rate := range []int{0, 1, 4, 16384} {
		t.Run(fmt.Sprintf("one of %d", rate+1), func(t *testing.T) {
			r := newMeterRig(t, metered, "vm1 m", "vm2 m")
			r.change("uplinks:", fmt.Sprintf("ipfix: {samplingRate: %d}\n  uplinks:", rate))
			const n = 100
			for range n {
				r.frame("vm1", udpFrame(t, 1, 100))
			}
			packets := map[flow.Direction]uint64{}
			if err := r.rec.Flows().Drain(func(b flow.Batch) error {
				for i, k := range b.Keys {
					packets[k.Direction] += b.Counts[i].Packets
					if c := b.Counts[i]; c.Bytes != c.Packets*128 || c.FrameBytes != c.Packets*142 {
						t.Errorf("%+v", c)
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			want := uint64((n + rate) / (rate + 1))
			if packets[flow.Ingress] != want || packets[flow.Egress] != want {
				t.Errorf("%v of %d packets are metered, want %d", packets, n, want)
			}
			var seen uint64 // counted only where the flows do not tell
			if rate > 0 {
				seen = n
			}
			if in, out := r.observed("vm1"), r.observed("vm2"); in != (dataplane.Observed{seen, 0}) ||
				out != (dataplane.Observed{0, seen}) {
				t.Errorf("observed %v and %v", in, out)
			}
		})
	}
}

// What finds no room is counted to the byte, takes no other's place, and leaves the others' room.
func TestAFullTableLosesNothingUncounted(t *testing.T) {
	r := newMeterRig(t, metered, "vm1 m", "vm2 m", "vm3 m")
	r.change("uplinks:", "ipfix: {maxFlows: 1000}\n  uplinks:")
	// Of 1000 a half is for the first who come, the other evenly for three ports and an uplink. A frame is two flows
	// here: where it comes from, and where it goes.
	const own, shared, sent = 125, 500, 2000
	send := func(from string, i int) {
		f := udpFrame(t, 0, 100)
		copy(f[6:], word(from))
		f[34], f[35] = byte(i>>8), byte(i)
		r.frame(from, f)
	}
	for range 2 { // the next round has as much room
		before := r.loss("vm1").Packets + r.loss("vm2").Packets + r.loss("vm3").Packets
		for i := range sent {
			send("vm1", i)
		}
		for i := range own {
			send("vm3", i)
		}
		flows, packets := r.bySource()
		lost := []flow.Loss{r.loss("vm1"), r.loss("vm2"), r.loss("vm3")}
		if flows["vm1"] != own+shared || flows["vm3"] != own {
			t.Errorf("flows of %v", flows)
		}
		if n := lost[0].Packets + lost[1].Packets + lost[2].Packets - before; packets["vm1"]+packets["vm3"]+
			n != 2*(sent+own) {
			t.Errorf("metered %v, lost %d", packets, n)
		}
		for _, l := range lost {
			if l.Bytes != l.Packets*128 || l.FrameBytes != l.Packets*142 || l.Flows != l.Packets {
				t.Errorf("lost %+v", l)
			}
		}
	}
}

// bySource drains: flows and packets by the port whose frames they are.
func (r *meterRig) bySource() (flows map[string]int, packets map[string]uint64) {
	r.t.Helper()
	points := r.rec.Flows().Points()
	flows, packets = map[string]int{}, map[string]uint64{}
	if err := r.rec.Flows().Drain(func(b flow.Batch) error {
		for _, c := range b.Counts {
			from := points[c.In].ID.Name
			flows[from]++
			packets[from] += c.Packets
		}
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return flows, packets
}

// Of a frame whose packets have lengths of their own (SCTP) the kernel says no size: it is not too long, whatever the
// MTU, and counts as the packets that it stands for.
func TestS66_PacketsOfLengthsOfTheirOwn(t *testing.T) {
	const anyLength = 0xffff
	r := newMeterRig(t, metered, "vm1 m", "vm2 plain")
	// 12 bytes of its header, 2984 of chunks
	f := packet(t, v4, append([]gopacket.SerializableLayer{ip4(132)}, udp(2988)...)...)
	r.gso("vm1", f, anyLength, 3)
	for key, got := range r.drained() {
		if !strings.HasPrefix(got, "3 packets 3080/3122 bytes vm1>vm2") {
			t.Errorf("%s: %s", key, got)
		}
	}
}

// Storm control takes them for as many frames as they stand for.
func TestD27_AFrameOfPacketsOfLengthsOfTheirOwnCostsThose(t *testing.T) {
	r := newMeterRig(t, "  portGroups: [{name: g, stormControl: {broadcast: 3, burst: 1s}}]\n", "vm1 g", "vm2 g")
	f := packet(t, v4, append([]gopacket.SerializableLayer{ip4(132)}, udp(100)...)...)
	copy(f, []byte{255, 255, 255, 255, 255, 255})
	for _, n := range []uint32{4, 3, 1} {
		got, err := r.rec.GSO(plan.PortID{Switch: "s", Name: "vm1"}, f, 0xffff, n, r.now)
		if err != nil || got.Delivered != (n == 3) {
			t.Errorf("%d packets: %+v %v", n, got, err)
		}
	}
}
