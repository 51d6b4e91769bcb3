package export

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/netsampler/goflow2/v2/decoders/netflow"
	protoproducer "github.com/netsampler/goflow2/v2/producer/proto"

	"heddle/internal/flow"
	"heddle/internal/flow/meter"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// reading is how a collector understands one flow record.
type reading struct {
	Port            uint64 // the source's
	Packets, Octets uint64 // scaled up by the sampling rate
	Start, End      int64  // ms
	Flags, VLAN     uint64
	Direction       uint64
}

// rate is bits per second, as in a graph that spreads a record over its time.
func (r reading) rate() float64 { return float64(r.Octets*8) / (float64(r.End-r.Start) / 1000) }

// Traffic of the three: a flow that lasts longer than the active timeout, one of TCP, and one of TCP with a flag beyond
// the lower byte.
const (
	longPort, tcpPort, allFlagsPort = 1000, 2000, 3000
	longPackets, longBytes          = 5, 1024 // per second, of which some packets are metered
	longSeconds                     = 140
	tcpFlags, allFlags              = 0x1b, 0x1c2
	segment                         = 100
	unknownDirection                = 2
)

// three sends the same traffic to nfcapd, nfacctd and goflow2, in the standard shape, and returns how each understands
// it.
func three(t *testing.T, samplingRate int) (nfdump, nfacctd, goflow2 []reading) {
	dump, acct := startNfcapd(t), startNfacctd(t)
	flow2 := collect(t, "127.0.0.1:0")
	x, err := New(begin, Config{Domain: 7, DomainName: "lab on host1",
		Collectors: []Collector{{Address: "127.0.0.1", Port: dump.port, Shape: Standard},
			{Address: "127.0.0.1", Port: acct.port, Shape: Standard}, {Address: "127.0.0.1", Port: flow2.port(),
				Shape: Standard}}})
	if err != nil {
		t.Fatal(err)
	}
	now := begin
	source := &batches{points: points()}
	m, err := meter.New(meter.Options{Dir: t.TempDir(), Source: source, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	set := meter.Settings{ActiveTimeout: time.Minute, IdleTimeout: 10 * time.Second, MaxFlows: 1000,
		Sampling: samplingRate}
	if err := m.Configure(now, map[string]meter.Switch{"lab": {Settings: set, Exporter: x}}); err != nil {
		t.Fatal(err)
	}
	for second := range longSeconds + 20 {
		source.second(now.Wall, second)
		now.Wall, now.Up = now.Wall.Add(time.Second), now.Up+time.Second
		if _, err := m.Step(now); err != nil {
			t.Fatal(err)
		}
		dump.drained()
		acct.drained()
		flow2.read()
	}
	for _, st := range x.Status() {
		if st.State != Sending || st.Lost != (Loss{}) {
			t.Fatalf("status %+v", st)
		}
	}
	x.Close(now)
	flow2.read()
	return dump.readings(), acct.readings(), goflow2Readings(t, flow2)
}

// batches is a kernel that counts the traffic of the three tests at two ports.
type batches struct {
	points  flow.Points
	batch   uint64
	pending flow.Batch
}

func (b *batches) Points() flow.Points          { return b.points }
func (b *batches) Losses() ([]flow.Loss, error) { return nil, nil }
func (b *batches) Drain(add func(flow.Batch) error) error {
	if len(b.pending.Keys) == 0 {
		return nil
	}
	defer func() { b.pending = flow.Batch{} }()
	return add(b.pending)
}

// second counts what passes in one second.
func (b *batches) second(at time.Time, n int) {
	b.batch++
	b.pending = flow.Batch{Number: b.batch}
	if n < longSeconds {
		b.count(at, longPort, 17, longPackets, longPackets*longBytes, 0)
	}
	switch n {
	case 3:
		b.count(at, tcpPort, protoTCP, 4, 400, tcpFlags)
		b.count(at, allFlagsPort, protoTCP, 2, 200, allFlags)
	}
}

// count counts packets at both ports, the last one 800 ms after the first.
func (b *batches) count(at time.Time, port uint16, protocol uint8, packets, octets uint64, flags uint16) {
	for _, d := range []flow.Direction{flow.Ingress, flow.Egress} {
		k := flow.Key{Point: 1 + uint16(d), VLAN: segment, EtherType: flow.IPv4, Direction: d, Protocol: protocol,
			SrcMAC: plan.MAC{2, 0, 0, 0, 1, 1},
			DstMAC: plan.MAC{2, 0, 0, 0, 1, 2}, Src: [16]byte{10, 1, 0, 1}, Dst: [16]byte{10, 2, 0, 1}, SrcPort: port,
			DstPort: 80}
		b.pending.Keys = append(b.pending.Keys, k)
		b.pending.Counts = append(b.pending.Counts, flow.Counts{Packets: packets, Bytes: octets, FrameBytes: octets +
			14*packets,
			First: at.UnixMilli(), Last: at.UnixMilli() + 800, In: 1, Out: 2, TCPFlags: flags, MinTTL: 64, MaxTTL: 64})
	}
}

// dumper is nfcapd and its files.
type dumper struct {
	*daemon
	dir string
}

func startNfcapd(t *testing.T) dumper {
	testkit.Tool(t, "nfcapd", "nfdump")
	dir, port := t.TempDir(), freePort(t)
	return dumper{run(t, port, "nfcapd", "-w", dir, "-b", "127.0.0.1", "-p", fmt.Sprint(port), "-t", "3600"), dir}
}

func (d dumper) readings() (all []reading) {
	said := d.stop(syscall.SIGTERM)
	// The columns of its CSV differ between releases.
	cmd := exec.Command("nfdump", "-q", "-N", "-R", d.dir, "-o", "fmt:%ts|%td|%sp|%pkt|%byt|%flg|%svln|%dvln|%dir")
	cmd.Env = append(os.Environ(), "TZ=UTC")
	out, err := cmd.Output()
	if err != nil || len(out) == 0 {
		d.t.Fatalf("nfdump prints %s, %v; nfcapd %s", out, err, said)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 9 {
			d.t.Fatalf("nfdump prints %q", line)
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		seconds, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			d.t.Fatal(err)
		}
		start, err := time.Parse("2006-01-02 15:04:05.000", f[0])
		if err != nil {
			d.t.Fatal(err)
		}
		flags := uint64(0)
		for i, c := range "FSRPAUEC" {
			if strings.ContainsRune(f[5], c) {
				flags |= 1 << i
			}
		}
		r := reading{Port: parsed(d.t, f[2]), Packets: parsed(d.t, f[3]), Octets: parsed(d.t, f[4]),
			Start: start.UnixMilli(),
			End:   start.UnixMilli() + int64(math.Round(seconds*1000)), Flags: flags}
		// It stores the VLAN where a frame came in and where it went out.
		switch f[8] {
		case "I", "0":
			r.VLAN = parsed(d.t, f[6])
		case "E", "1":
			r.VLAN, r.Direction = parsed(d.t, f[7]), 1
		default:
			d.t.Fatalf("nfdump prints the direction %q", f[8])
		}
		all = append(all, r)
	}
	return all
}

func parsed(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// accounter is nfacctd and its file.
type accounter struct {
	*daemon
	out      string
	twoVLANs bool
}

// nfacctdHasTwoVLANs reports whether nfacctd has one column for the VLAN where a frame came in and another for where it
// went out, as from release 1.7.8 on; before, it has one column. Since the same release it reads TCP flags of two
// bytes.
func nfacctdHasTwoVLANs(t *testing.T) bool {
	t.Helper()
	testkit.Tool(t, "nfacctd")
	columns, err := exec.Command("nfacctd", "-a").Output()
	if err != nil || !bytes.Contains(columns, []byte("\nsampling_direction ")) {
		t.Fatalf("nfacctd lists its columns as %s, %v", columns, err)
	}
	return bytes.Contains(columns, []byte("\nin_vlan "))
}

func startNfacctd(t *testing.T) accounter {
	twoVLANs := nfacctdHasTwoVLANs(t)
	vlans := "vlan"
	if twoVLANs {
		vlans = "in_vlan, out_vlan"
	}
	port, dir := freePort(t), t.TempDir()
	out, conf := filepath.Join(dir, "out.json"), filepath.Join(dir, "conf")
	text := fmt.Sprintf("daemonize: false\nnfacctd_ip: 127.0.0.1\nnfacctd_port: %d\nnfacctd_renormalize: "+
		"true\ntimestamps_since_epoch: true\n"+
		"plugins: print[all]\naggregate[all]: src_host, dst_host, src_port, dst_port, proto, tcpflags, %s, in_iface, "+
		"out_iface, "+
		"sampling_direction, timestamp_start, timestamp_end\nprint_output[all]: json\nprint_output_file[all]: %s\n"+
		"print_output_file_append[all]: true\nprint_refresh_time[all]: 1\nplugin_buffer_size[all]: "+
		"10240\nplugin_pipe_size[all]: 1024000\n", port, vlans, out)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := run(t, port, "nfacctd", "-f", conf)
	d.awaitText("Purging cache - END") // a signal before that would make it lose its records
	return accounter{d, out, twoVLANs}
}

func (a accounter) readings() (all []reading) {
	said := a.stop(syscall.SIGINT)
	f, err := os.Open(a.out)
	if err != nil {
		a.t.Fatalf("%v; nfacctd says %s", err, said)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row struct {
			SourcePort     uint64 `json:"port_src"`
			Packets, Bytes uint64
			Flags          string `json:"tcp_flags"`
			VLAN           uint64 `json:"vlan"`
			VLANIn         uint64 `json:"vlan_in"`
			VLANOut        uint64 `json:"vlan_out"`
			Direction      string `json:"sampling_direction"`
			Start          string `json:"timestamp_start"`
			End            string `json:"timestamp_end"`
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			a.t.Fatalf("%v: %s", err, lines.Text())
		}
		if a.twoVLANs {
			if row.VLANIn != row.VLANOut {
				a.t.Errorf("nfacctd has the VLANs %d and %d of one record", row.VLANIn, row.VLANOut)
			}
			row.VLAN = row.VLANIn
		}
		r := reading{Port: row.SourcePort, Packets: row.Packets, Octets: row.Bytes, VLAN: row.VLAN,
			Flags: parsed(a.t, row.Flags),
			Start: epoch(a.t, row.Start), End: epoch(a.t, row.End), Direction: map[string]uint64{"i": 0,
				"e": 1}[row.Direction]}
		all = append(all, r)
	}
	return all
}

// epoch reads seconds since 1970 with a fraction.
func epoch(t *testing.T, s string) int64 {
	t.Helper()
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return int64(math.Round(f * 1000))
}

func goflow2Readings(t *testing.T, c *collector) (all []reading) {
	templates, sampling := netflow.CreateTemplateSystem(), protoproducer.CreateSamplingSystem()
	for i, m := range c.messages {
		var packet netflow.IPFIXPacket
		if err := netflow.DecodeMessageVersion(bytes.NewBuffer(m.bytes), templates, nil, &packet); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		messages, err := protoproducer.ProcessMessageIPFIXConfig(&packet, sampling, nil)
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		for _, message := range messages {
			f := message.(*protoproducer.ProtoProducerMessage)
			if a, ok := netip.AddrFromSlice(f.SrcAddr); !ok || !a.Is4() {
				continue // an options record
			}
			if f.SrcVlan != f.DstVlan || f.SrcVlan != f.VlanId {
				t.Errorf("goflow2 has the VLANs %d, %d and %d of one record", f.VlanId, f.SrcVlan, f.DstVlan)
			}
			all = append(all, reading{Port: uint64(f.SrcPort), Packets: f.Packets * f.SamplingRate,
				Octets: f.Bytes * f.SamplingRate,
				Start:  int64(f.TimeFlowStartNs) / 1e6, End: int64(f.TimeFlowEndNs) / 1e6, Flags: uint64(f.TcpFlags),
				VLAN:      uint64(f.VlanId),
				Direction: unknownDirection})
		}
	}
	return all
}

// Three collectors read the same traffic alike, in the standard shape: long flows, flags, VLANs in both directions, and
// sampling.
func TestS65_S66_ThreeCollectorsReadTheSame(t *testing.T) {
	t.Parallel()
	for _, samplingRate := range []int{0, 9} {
		t.Run(fmt.Sprint("samplingRate ", samplingRate), func(t *testing.T) {
			t.Parallel()
			nfdump, nfacctd, goflow2 := three(t, samplingRate)
			scale := uint64(1 + samplingRate)
			nfacctdFlags := uint64(0)
			if nfacctdHasTwoVLANs(t) {
				nfacctdFlags = allFlags & 0xff
			}
			for name, c := range map[string]struct {
				readings   []reading
				directions []uint64 // of each two records
				allFlags   uint64   // as it reads them
			}{"nfdump": {nfdump, []uint64{0, 1}, allFlags & 0xff}, "nfacctd": {nfacctd, []uint64{0, 1}, nfacctdFlags},
				"goflow2": {goflow2, []uint64{unknownDirection, unknownDirection}, allFlags}} {
				checkShort(t, name, c.readings, c.directions, tcpPort, reading{Packets: 4 * scale, Octets: 400 * scale,
					Flags: tcpFlags})
				checkShort(t, name, c.readings, c.directions, allFlagsPort,
					reading{Packets: 2 * scale, Octets: 200 * scale, Flags: c.allFlags})
				checkLong(t, name, c.readings, scale)
			}
		})
	}
}

func of(all []reading, port uint64) (some []reading) {
	for _, r := range all {
		if r.Port == port {
			some = append(some, r)
		}
	}
	slices.SortFunc(some, func(a, b reading) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Direction, b.Direction))
	})
	return some
}

// checkShort compares the records of a flow that has one record at each of two ports.
func checkShort(t *testing.T, name string, all []reading, directions []uint64, port uint64, want reading) {
	t.Helper()
	want.Port, want.VLAN = port, segment
	want.Start = begin.Wall.UnixMilli() + 3000
	want.End = want.Start + 800
	var both []reading
	for _, d := range directions {
		want.Direction = d
		both = append(both, want)
	}
	if d := gocmp.Diff(both, of(all, port)); d != "" {
		t.Errorf("%s, port %d: -want +got:\n%s", name, port, d)
	}
}

// checkLong checks the records of the long flow: each has the traffic's rate, and together they contain all of it.
func checkLong(t *testing.T, name string, all []reading, scale uint64) {
	t.Helper()
	long, rate := of(all, longPort), float64(longPackets*longBytes*8*scale)
	var packets, octets uint64
	for i, r := range long {
		packets, octets = packets+r.Packets, octets+r.Octets
		if r.VLAN != segment || r.rate() < 0.98*rate || r.rate() > 1.02*rate {
			t.Errorf("%s: record %d has a rate of %.0f bit/s, want %.0f: %+v", name, i, r.rate(), rate, r)
		}
	}
	const points = 2
	if want := points * longSeconds * longPackets * scale; len(long) != points*3 || packets != want ||
		octets != want*longBytes {
		t.Errorf("%s: %d records of %d packets and %d bytes; want %d packets", name, len(long), packets, octets, want)
	}
}
