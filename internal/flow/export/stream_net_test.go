package export

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/certs"
)

// newStreamWire is an exporter's host and a collector's over TCP, with a cable between them; the exporter has been
// connected.
func newStreamWire(t *testing.T, dead time.Duration) (*rig, *streamCollector, *netns.NS) {
	t.Helper()
	w := newWire(t, Config{})
	var c *streamCollector
	if err := w.far.Do(func() error {
		c = collectStream(t, netip.MustParseAddrPort("198.51.100.2:4739"),
			nil)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	conf := streaming(c, TCP)
	conf.pace.dead, conf.pace.connect = dead, time.Second
	conf.dial = func(ctx context.Context, to netip.AddrPort, from netip.Addr, dead time.Duration) (conn *connection,
		err error) {
		err = w.host.Do(func() (err error) { conn, err = dialStream(ctx, to, from, dead); return err })
		return conn, err
	}
	r := newRig(t, conf)
	r.until("it is connected", sending)
	return r, c, w.host
}

// The exporter notices when a collector's host disappears, whether or not it is sending something. It sends again what
// was not confirmed when the host is back, and reports that much as unsure.
func TestTCPHostThatGoesWithoutAWord(t *testing.T) {
	testkit.Long(t, "waits until a silent host is given up")
	for _, busy := range []bool{true, false} {
		t.Run(fmt.Sprint("busy ", busy), func(t *testing.T) {
			r, c, host := newStreamWire(t, 3*time.Second)
			r.send(many(1000)...)
			r.until("everything is confirmed", func(st Status) bool {
				return st.Waiting == (Loss{}) &&
					c.told().records == 1000
			})
			if out, err := host.Output("ip", "link", "set", "m0", "down"); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			if busy {
				r.send(many(500)...)
			}
			st := r.until("it is found", func(st Status) bool { return st.State == Away })
			if !strings.Contains(st.Why, "confirmed nothing for too long") &&
				!strings.Contains(st.Why, "unreachable") && !strings.Contains(st.Why, "does not answer") {
				t.Errorf("status %+v", st)
			}
			if busy && st.Waiting.Records != 500 || st.Unsure.Records != 1000+st.Waiting.Records ||
				st.Lost != (Loss{}) {
				t.Errorf("status %+v", st)
			}
			if out, err := host.Output("ip", "link", "set", "m0", "up"); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			r.send(many(700)...)
			st = r.until("it is back", func(st Status) bool { return sending(st) && st.Waiting == (Loss{}) })
			r.awaitTold(c, st.Records)
			if st.Records != 1700 && !busy || st.Records != 2200 && busy {
				t.Errorf("status %+v", st)
			}
			c.sound()
		})
	}
}

// socatCollector is libfixbuf's reader behind a listener of socat's, over TCP or, with OpenSSL, over TLS.
func socatCollector(t *testing.T, at netip.AddrPort, listen string) (out func() string) {
	t.Helper()
	testkit.Tool(t, "socat", "ipfixDump")
	file := t.TempDir() + "/out"
	cmd := exec.Command("socat", "-d", "-d", "-u", fmt.Sprintf("%s,bind=%s,reuseaddr,fork",
		strings.Replace(listen, "PORT", fmt.Sprint(at.Port()), 1), at.Addr()),
		"SYSTEM:ipfixDump --in - >>"+file)
	var log said
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for end := time.Now().Add(time.Minute); !strings.Contains(log.String(), "listening on"); time.Sleep(
		5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("socat does not listen: %s", log.String())
		}
	}
	return func() string {
		b, _ := os.ReadFile(file)
		return string(b) + "\n" + log.String()
	}
}

// fixbuf is what libfixbuf has read: flow records, and their packets.
func fixbuf(text string) (records, packets uint64) {
	for line := range strings.Lines(text) {
		if _, n, ok := strings.Cut(line, "packetDeltaCount : "); ok {
			k, _ := strconv.ParseUint(strings.TrimSpace(n), 10, 64)
			records, packets = records+1, packets+k
		}
	}
	return records, packets
}

func TestLibfixbufReadsWhatComesOverTCPAndTLS(t *testing.T) {
	a, dir := certs.New(t, "site"), t.TempDir()
	server := files(t, dir, a.PEM(), a.Issue(own(1).Addr().String(), time.Hour))
	for i, listen := range []string{"TCP-LISTEN:PORT",
		fmt.Sprintf("OPENSSL-LISTEN:PORT,cert=%s,key=%s,cafile=%s,verify=1", server.Certificate, server.Key,
			server.CA)} {
		at := own(uint16(4790 + i))
		out := socatCollector(t, at, listen)
		conf := streaming(&streamCollector{at: at}, []Transport{TCP, OverTLS}[i])
		conf.TLS = map[Collector]TLS{conf.Collectors[0]: files(t, t.TempDir(), a.PEM(), a.Issue("host1", time.Hour))}
		r := newRig(t, conf)
		r.until("it is connected", sending)
		want := many(3000)
		for range 5 {
			r.send(want[:600]...)
			want = append(want[600:], want[:600]...)
			r.pass(time.Minute) // options again
		}
		r.until("everything is confirmed", func(st Status) bool { return st.Waiting == (Loss{}) })
		r.x.Close(r.now)
		var records, packets uint64
		for end := time.Now().Add(time.Minute); records < 3000 &&
			time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			records, packets = fixbuf(out())
		}
		if sum := sumOf(want); records != sum.records || packets != sum.packets ||
			strings.Contains(strings.ToLower(out()), "error") {
			text := out()
			t.Errorf("%s: libfixbuf read %d records with %d packets, want %+v; it says %s", listen, records, packets,
				sum, text[max(0, len(text)-3000):])
		}
	}
}
