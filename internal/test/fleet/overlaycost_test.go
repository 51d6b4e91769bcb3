package fleet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/abi"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// The sizes that are compared, and how many frames one measurement sends.
const (
	costSegments, costMACs = 500, 200
	fewSegments, fewMACs   = 2, 5
	costFrames             = 50_000
)

// costRounds asks for as many rounds of a measurement; one is enough to see that frames arrive.
const costRounds = "HEDDLE_COST_ROUNDS"

// TestS84_AHostOf500SegmentsAnd100000MACsSendsEachFrameToItsEndpoint: frames to 100,000 MACs in 500 segments at random
// go to where those are, and to nobody else; what they cost beside frames to few MACs is logged.
func TestS84_AHostOf500SegmentsAnd100000MACsSendsEachFrameToItsEndpoint(t *testing.T) {
	testkit.Long(t, "makes 500 segments and 100,000 MACs")
	t.Parallel()
	testkit.Tool(t, "ip")
	ns := testkit.NS(t, "host")
	join(t, ns, "u0", testkit.NS(t, "sink"), "r0") // whose other end takes nothing: it is not the neighbour
	for _, args := range [][]string{{"link", "set", "u0", "mtu", "1600"}, {"addr", "add", "10.9.0.1/24", "dev", "u0"},
		{"neigh", "add", "10.9.0.2", "lladdr", "02:00:00:00:09:02", "dev", "u0", "nud", "permanent"},
		{"neigh", "add", "10.9.0.3", "lladdr", "02:00:00:00:09:03", "dev", "u0", "nud", "permanent"}} {
		if out, err := ns.Output("ip", args...); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	h := newHost(t, ns)
	c := &cost{t: t, host: h, guests: testkit.NS(t, "guests"), samples: map[string][]taken{}}
	c.plug()
	h.Start(costConfig())
	h.Up("p1", fmt.Sprint("p", costSegments), "tunnel")
	c.fill()
	rounds, _ := strconv.Atoi(os.Getenv(costRounds))
	for range max(1, rounds) {
		c.measure("few", fewSegments, fewMACs, uniform)
		c.measure("many", costSegments, costMACs, uniform)
		c.measure("many by Zipf", costSegments, costMACs, zipf)
	}
	c.report()
}

// costConfig is a host with a port in each of 500 segments.
func costConfig() string {
	var groups, ports strings.Builder
	for n := 1; n <= costSegments; n++ {
		fmt.Fprintf(&groups, "  - {name: g%d, overlay: {vni: %[1]d}}\n", n)
		fmt.Fprintf(&ports, "- {name: p%d, switch: lab, portGroup: g%[1]d, device: p%[1]d, mac: %q}\n", n,
			net.HardwareAddr(costMAC(n)))
	}
	return "switches:\n- name: lab\n  mtu: 1500\n  tunnel:\n    endpoints: [{address: 10.9.0.1}]\n" +
		"    peers: [{name: far, address: 10.9.0.2}, {name: other, address: 10.9.0.3}]\n  portGroups:\n" +
		groups.String() + "ports:\n" + ports.String()
}

// costMAC is that of the n-th port.
func costMAC(n int) []byte { return []byte{2, 0, 0, 1, byte(n >> 8), byte(n)} }

// cost is what frames take of a host.
type cost struct {
	t       *testing.T
	host    *host
	guests  *netns.NS // with the other end of each port
	samples map[string][]taken
}

// taken is the time for one frame, in nanoseconds: of the tunnel's program, of the switch program at the port, and of
// the thread that sends, with all that the kernel does before the frame has left.
type taken struct{ tunnel, port, all float64 }

// draw says which of n is next, each time that it is asked.
type draw func(r *rand.Rand, n int) func() int

func uniform(r *rand.Rand, n int) func() int { return func() int { return r.IntN(n) } }

// zipf has few of them have most of the frames (exponent 1.1), as traffic of many machines has.
func zipf(r *rand.Rand, n int) func() int {
	z := rand.NewZipf(r, 1.1, 1, uint64(n-1))
	return func() int { return int(z.Uint64()) }
}

// farMAC is one of the MACs behind the other endpoint.
func farMAC(segment, n int) [6]byte {
	m := [6]byte{2, 9}
	binary.BigEndian.PutUint32(m[2:], uint32(segment)<<16|uint32(n))
	return m
}

// plug makes the ports' devices, and their other ends e1, e2, … in one namespace.
func (c *cost) plug() {
	c.t.Helper()
	// without IPv6, of which each device would say something to all
	if out, err := c.guests.Output("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"); err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
	handle, err := c.guests.Handle()
	if err != nil {
		c.t.Fatal(err)
	}
	defer handle.Close()
	err = c.host.Do(func() error {
		for n := 1; n <= costSegments; n++ {
			v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprint("p", n)}, PeerName: fmt.Sprint("e", n),
				PeerNamespace: netlink.NsFd(int(handle)), PeerHardwareAddr: costMAC(n)}
			if err := errors.Join(netlink.LinkAdd(v), netlink.LinkSetUp(v)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	inside(c.t, c.guests, func() error {
		for n := 1; n <= costSegments; n++ {
			if err := up(fmt.Sprint("e", n)); err != nil {
				return err
			}
		}
		return nil
	})
}

// fill writes where the MACs are, as controllers would say.
func (c *cost) fill() {
	c.t.Helper()
	numbers, locations := c.host.overlayTable("overlay_numbers"), c.host.locations()
	defer numbers.Close()
	defer locations.Close()
	endpoint := c.endpoint()
	var name abi.SegmentName
	var number uint32
	var keys []abi.LocationKey
	each := numbers.Iterate()
	for each.Next(&name, &number) {
		if name.Vni > costSegments {
			continue
		}
		for n := range costMACs {
			keys = append(keys, abi.LocationKey{Segment: name.Slot<<16 | number, MAC: farMAC(int(name.Vni), n)})
		}
	}
	if err := each.Err(); err != nil || len(keys) != costSegments*costMACs {
		c.t.Fatalf("%d MACs: %v", len(keys), err)
	}
	values := make([]abi.Location, len(keys))
	for i := range values {
		values[i] = abi.Location{Endpoint: endpoint, Source: abi.LocationAnnounced}
	}
	if n, err := locations.BatchUpdate(keys, values, nil); err != nil {
		c.t.Fatalf("%d MACs written: %v", n, err)
	}
}

// endpoint is the number of the other endpoint.
func (c *cost) endpoint() (number uint32) {
	c.t.Helper()
	m := c.host.overlayTable("endpoint_numbers")
	defer m.Close()
	var name abi.EndpointName
	each := m.Iterate()
	if !each.Next(&name, &number) {
		c.t.Fatal("the host knows no endpoint")
	}
	return number
}

// outgoing is a frame, and the port that sends it.
type outgoing struct {
	bytes []byte
	port  int
}

// frames are those of one measurement; their bytes take as much memory for few MACs as for many.
func (c *cost) frames(segments, macs int, next draw) []outgoing {
	r := rand.New(rand.NewPCG(1, 1))
	all, order, draw := make([]outgoing, costFrames), r.Perm(segments*macs), next(r, segments*macs)
	for i := range all {
		n := order[draw()]
		port := 1 + n/macs
		all[i] = outgoing{cable.Frame(farMAC(port, n%macs), [6]byte(costMAC(port)), 0, "cost"), port}
	}
	return all
}

// measure sends frames and adds what they took.
func (c *cost) measure(name string, segments, macs int, next draw) {
	c.t.Helper()
	frames := c.frames(segments, macs, next)
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		c.t.Fatal(err)
	}
	defer stats.Close()
	before, left := c.programs(), c.left()
	var all float64
	inside(c.t, c.guests, func() (err error) { all, err = sendAll(frames); return err })
	now := c.programs()
	// A busy machine may lose some on their way to the switch; those that go to all leave twice.
	if n := c.left() - left; n < costFrames/2 || n > costFrames+costFrames/100 {
		c.t.Errorf("%s: %d frames left for %d that were sent", name, n, costFrames)
	}
	c.samples[name] = append(c.samples[name], taken{now.tunnel.per(before.tunnel), now.port.per(before.port), all})
}

// ran is how often a program ran, and for how long.
type ran struct {
	count uint64
	ns    float64
}

// per is the time of one run since before.
func (r ran) per(before ran) float64 { return (r.ns - before.ns) / float64(r.count-before.count) }

type programsRan struct{ tunnel, port ran }

// programs is what the programs on a frame's way have run so far.
func (c *cost) programs() (all programsRan) {
	c.t.Helper()
	err := c.host.Do(func() (err error) {
		if all.tunnel, err = runsOf("vx-lab", ebpf.AttachTCXEgress); err == nil {
			all.port, err = runsOf("p1", ebpf.AttachTCXIngress)
		}
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return all
}

// runsOf is what the programs of a device have run together; a frame runs each once.
func runsOf(device string, where ebpf.AttachType) (all ran, err error) {
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
		all.count, all.ns = s.RunCount, all.ns+float64(s.Runtime.Nanoseconds())
	}
	return all, nil
}

// left is how many frames have left by the underlay.
func (c *cost) left() (n int) {
	c.t.Helper()
	err := c.host.Do(func() error {
		l, err := netlink.LinkByName("u0")
		if err == nil {
			n = int(l.Attrs().Statistics.TxPackets)
		}
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// sendAll sends frames, and says how long the thread was at work for each, in nanoseconds. What the kernel does in
// interrupts that the thread causes is in it.
func sendAll(frames []outgoing) (perFrame float64, err error) {
	ports, err := devices()
	if err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	before, err := threadTime()
	if err != nil {
		return 0, err
	}
	for _, f := range frames {
		if err := unix.Sendto(fd, f.bytes, 0, ports[f.port]); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return 0, err // a machine that is too busy to take more loses it
		}
	}
	after, err := threadTime()
	return float64(after-before) / float64(len(frames)), err
}

// devices are the addresses of the ports' other ends.
func devices() (all [costSegments + 1]unix.Sockaddr, err error) {
	for n := 1; n < len(all); n++ {
		l, err := netlink.LinkByName(fmt.Sprint("e", n))
		if err != nil {
			return all, err
		}
		all[n] = &unix.SockaddrLinklayer{Ifindex: l.Attrs().Index}
	}
	return all, nil
}

func threadTime() (ns int64, err error) {
	var t unix.Timespec
	err = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return t.Nano(), err
}

// report logs medians and quartiles.
func (c *cost) report() {
	for _, name := range []string{"few", "many", "many by Zipf"} {
		all := c.samples[name]
		text := name + ":"
		for _, part := range []struct {
			what string
			of   func(taken) float64
		}{{"tunnel's program", func(s taken) float64 { return s.tunnel }},
			{"switch program", func(s taken) float64 { return s.port }},
			{"sender's thread in all", func(s taken) float64 { return s.all }}} {
			var values []float64
			for _, s := range all {
				values = append(values, part.of(s))
			}
			slices.Sort(values)
			n := len(values)
			text += fmt.Sprintf(" %s %.0f ns (%.0f–%.0f),", part.what, values[n/2], values[n/4], values[n*3/4])
		}
		c.t.Logf("%s %d rounds", text, len(all))
	}
}
