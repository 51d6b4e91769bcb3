package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/netsampler/goflow2/v2/decoders/netflow"

	"heddle/internal/flow"
	"heddle/internal/test/testkit"
)

// totals are the sums that a collector computed from records.
type totals struct{ records, packets, octets uint64 }

// totals are the sums of records in a shape; both says whether directions of a biflow count as separate records.
func (r *rig) totals(s shape, records []flow.Record, both bool) (t totals) {
	for i := range records {
		l, v, _ := s.of(&records[i], &r.x.ports)
		if l == nil {
			continue
		}
		t.records, t.packets, t.octets = t.records+1, t.packets+v.Delta.Packets, t.octets+v.Delta.Bytes
		if v.Reverse != nil && s.options() {
			t.packets, t.octets = t.packets+v.Reverse.Delta.Packets, t.octets+v.Reverse.Delta.Bytes
			if both {
				t.records++
			}
		}
	}
	return t
}

// freePort is a UDP port that is not in use at the moment.
func freePort(t *testing.T) uint16 {
	t.Helper()
	return netip.MustParseAddrPort(testkit.Unused(t)).Port()
}

// daemon is a program that collects on a port.
type daemon struct {
	t    *testing.T
	cmd  *exec.Cmd
	port uint16
	said *said
	done chan error
}

// said is a daemon's output.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// awaitText waits until the daemon has printed a text.
func (d *daemon) awaitText(text string) {
	d.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !strings.Contains(d.said.String(),
		text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("the collector does not say %q, but %s", text, d.said)
		}
	}
}

func run(t *testing.T, port uint16, name string, args ...string) *daemon {
	t.Helper()
	testkit.Tool(t, name)
	d := &daemon{t: t, cmd: exec.Command(name, args...), port: port, said: &said{}, done: make(chan error, 1)}
	d.cmd.Stdout, d.cmd.Stderr = d.said, d.said
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	d.cmd.Dir = t.TempDir()
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { d.done <- d.cmd.Wait() }()
	t.Cleanup(func() { _ = d.cmd.Process.Kill() })
	d.awaitQueue("listens", func(string) bool { return true })
	return d
}

// awaitQueue waits until the kernel shows the daemon's socket in the wanted state: rx is how many bytes it has not
// read, in hexadecimal.
func (d *daemon) awaitQueue(what string, want func(rx string) bool) {
	d.t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		for _, table := range []string{"/proc/net/udp", "/proc/net/udp6"} {
			data, _ := os.ReadFile(table)
			for line := range strings.Lines(string(data)) {
				f := strings.Fields(line)
				if len(f) < 13 || !strings.HasSuffix(f[1], fmt.Sprintf(":%04X", d.port)) {
					continue
				}
				if drops := f[len(f)-1]; drops != "0" {
					d.t.Fatalf("the collector's socket dropped %s messages", drops)
				}
				_, rx, _ := strings.Cut(f[4], ":")
				if want(rx) {
					return
				}
			}
		}
	}
	d.t.Fatalf("%s: the collector never %s; it said %s", d.cmd.Path, what, d.said)
}

// drained waits until the daemon has read everything.
func (d *daemon) drained() {
	d.t.Helper()
	d.awaitQueue("read everything", func(rx string) bool { return strings.Trim(rx, "0") == "" })
}

// stop ends the daemon, which then writes its records.
func (d *daemon) stop(s os.Signal) string {
	d.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
	select {
	case <-d.done:
	case <-time.After(2 * time.Minute):
		d.t.Fatal("the collector does not end")
	}
	return d.said.String()
}

// export sends records in portions that fit into the daemon's socket, one active timeout apart, so that templates are
// sent again.
func (d *daemon) export(s Shape, records []flow.Record) *rig {
	r := newRig(d.t, Config{Domain: 7, DomainName: "lab on host1",
		Collectors: []Collector{{Address: "127.0.0.1", Port: d.port, Shape: s}}})
	r.pass(0)
	d.drained()
	for len(records) > 0 {
		n := min(100, len(records))
		r.send(records[:n]...)
		records = records[n:]
		d.drained()
		r.pass(10 * time.Second)
		d.drained()
	}
	// A collector that has read the last message may not have processed it yet. Once it has read another one, it
	// has.
	r.pass(10 * time.Second)
	d.drained()
	if st := r.x.Status()[0]; st.Lost.Records > 0 || st.State != Sending {
		d.t.Fatalf("status %+v", st)
	}
	return r
}

// plain are the records with one direction and with IP.
func plain(records []flow.Record) (some []flow.Record) {
	for _, r := range records {
		if r.Reverse == nil && (r.Key.EtherType == flow.IPv4 || r.Key.EtherType == flow.IPv6) {
			some = append(some, r)
		}
	}
	return some
}

func shapes(t *testing.T, f func(t *testing.T, name Shape, s shape)) {
	for _, name := range []Shape{Standard, VDS} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			s, err := shapeOf(name)
			if err != nil {
				t.Fatal(err)
			}
			f(t, name, s)
		})
	}
}

func TestNfcapdReadsBothShapes(t *testing.T) {
	t.Parallel()
	testkit.Tool(t, "nfcapd", "nfdump")
	shapes(t, func(t *testing.T, name Shape, s shape) {
		dir, port := t.TempDir(), freePort(t)
		d := run(t, port, "nfcapd", "-w", dir, "-b", "127.0.0.1", "-p", fmt.Sprint(port), "-t", "3600")
		records := append(kinds(), many(1000)...)
		r := d.export(name, records)
		said := d.stop(syscall.SIGTERM)
		for line := range strings.Lines(said) {
			for _, bad := range []string{"error", "malformed", "corrupt", "unknown"} {
				if !strings.Contains(line, "Sequence Errors") && strings.Contains(strings.ToLower(line), bad) {
					t.Errorf("nfcapd says %s", line)
				}
			}
		}
		// It does not count options records as RFC 7011 §3.1 does, and sees a gap when they are sent again.
		if gaps := len(records) / 100 * 10 / 60; !strings.Contains(said, "Bad Packets: 0") || !s.options() &&
			!strings.Contains(said, "Sequence Errors: 0,") ||
			s.options() && !strings.Contains(said, fmt.Sprintf("Sequence Errors: %d,", gaps)) {
			t.Errorf("nfcapd says %s", said)
		}
		got := nfdumpTotals(t, dir)
		if want := r.totals(s, records, false); got != want {
			t.Errorf("nfdump reads %+v, want %+v", got, want)
		}
	})
}

// nfdumpTotals adds up what nfdump reads, both directions of a record. The columns of its CSV differ between releases.
func nfdumpTotals(t *testing.T, dir string) (sum totals) {
	out, err := exec.Command("nfdump", "-q", "-N", "-R", dir, "-o", "fmt:%pkt %opkt %byt %obyt").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		var n [4]uint64
		if _, err := fmt.Sscan(line, &n[0], &n[1], &n[2], &n[3]); err != nil {
			t.Fatalf("nfdump prints %q: %v", line, err)
		}
		sum.records++
		sum.packets += n[0] + n[1]
		sum.octets += n[2] + n[3]
	}
	return sum
}

func TestNfacctdReadsBothShapes(t *testing.T) {
	t.Parallel()
	testkit.Tool(t, "nfacctd")
	shapes(t, func(t *testing.T, name Shape, s shape) {
		port, dir := freePort(t), t.TempDir()
		out, conf := filepath.Join(dir, "out.json"), filepath.Join(dir, "conf")
		text := fmt.Sprintf("daemonize: false\nnfacctd_ip: 127.0.0.1\nnfacctd_port: %d\nplugins: print[all]\n"+
			"aggregate[all]: src_host, dst_host, src_port, dst_port, proto, etype\nprint_output[all]: "+
			"json\nprint_output_file[all]: %s\n"+
			"print_output_file_append[all]: true\nprint_refresh_time[all]: 1\nplugin_buffer_size[all]: "+
			"1000\nplugin_pipe_size[all]: 1000000\n", port, out)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d := run(t, port, "nfacctd", "-f", conf)
		d.awaitText("Purging cache - END") // a signal before that would make it lose its records
		// It only counts one direction, and leaves out flows without IP.
		records := append(plain(kinds()), many(1000)...)
		r := d.export(name, records)
		want := r.totals(s, records, true)
		said := d.stop(syscall.SIGINT)
		for line := range strings.Lines(said) {
			if strings.HasPrefix(line, "ERROR") || strings.Contains(line, "alformed") ||
				strings.Contains(line, "ropping") || strings.Contains(line, "nknown") ||
				strings.Contains(line, "missing") {
				t.Errorf("nfacctd says %s", line)
			}
		}
		if got := nfacctdTotals(t, out); got.packets != want.packets || got.octets != want.octets {
			t.Errorf("nfacctd reads %+v, want %+v; it says %s", got, want, said)
		}
	})
}

func nfacctdTotals(t *testing.T, file string) (sum totals) {
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return sum
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row struct{ Packets, Bytes uint64 }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return sum // it is writing
		}
		sum.records, sum.packets, sum.octets = sum.records+1, sum.packets+row.Packets, sum.octets+row.Bytes
	}
	return sum
}

func TestGoflow2ReadsBothShapes(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, name Shape, s shape) {
		c := collect(t, "127.0.0.1:0")
		r := newRig(t, to(c, name))
		records := append(kinds(), many(300)...)
		want := r.totals(s, records, false)
		r.sendTo(c, records)
		c.await(int(want.records))
		templates, got := netflow.CreateTemplateSystem(), totals{}
		for i, m := range c.messages {
			var packet netflow.IPFIXPacket
			if err := netflow.DecodeMessageVersion(bytes.NewBuffer(m.bytes), templates, nil, &packet); err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
			for _, set := range packet.FlowSets {
				switch set := set.(type) {
				case netflow.RawFlowSet:
					t.Errorf("message %d: a set without a template", i)
				case netflow.DataFlowSet:
					got.addGoflow2(set)
				}
			}
		}
		if got != want {
			t.Errorf("goflow2 reads %+v, want %+v", got, want)
		}
	})
}

func (s *totals) addGoflow2(set netflow.DataFlowSet) {
	for _, rec := range set.Records {
		s.records++
		for _, f := range rec.Values {
			var n uint64
			if b, ok := f.Value.([]byte); ok {
				for _, x := range b {
					n = n<<8 | uint64(x)
				}
			}
			switch f.Type {
			case netflow.IPFIX_FIELD_packetDeltaCount:
				s.packets += n
			case netflow.IPFIX_FIELD_octetDeltaCount:
				s.octets += n
			}
		}
	}
}
