package kerneltest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"heddle/internal/abi"
	"heddle/internal/capture/filter"
	"heddle/internal/dataplane"
	"heddle/internal/test/testkit"
)

// sampleFrames are frames of many kinds; the tag, if there is one, is beside the frame when the program sees it.
func sampleFrames(t *testing.T) (frames [][]byte) {
	t.Helper()
	add := func(hexText string) {
		b, err := hex.DecodeString(strings.ReplaceAll(hexText, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, append(b, bytes.Repeat([]byte{byte(len(frames))}, max(60-len(b), 2))...))
	}
	const head = "ffffffffffff 020000000001 "
	for _, tag := range []string{"", "8100 000a ", "8100 600b ", "8100 000a 8100 00c8 "} {
		for _, body := range []string{
			"0800 4500 0040 0001 0000 40 06 0000 0a000001 0a000002 c000 01bb 00000001 00000002 5012 1000 0000 0000",
			"0800 4500 0040 0001 2000 40 06 0000 0a000001 0a000002 c000 01bb 00000001 00000002 5010 1000 0000 0000",
			"0800 4500 0040 0001 00b9 40 06 0000 0a000001 0a000002 c000 01bb 00000001 00000002 5010 1000 0000 0000",
			"0800 4700 0048 0001 0000 40 11 0000 0a000001 c0a80102 0101010101010101 0035 0035 0020 0000",
			"0800 4500 0020 0001 0000 40 01 0000 0a000003 0a000002 0800 0000 0007 0001",
			"86dd 6000 0000 0014 06 40 fe800000000000000000000000000001 fe800000000000000000000000000002 c000 0050 " +
				"00000001 00000002 5002 1000 0000 0000",
			"86dd 6000 0000 0008 11 40 fe800000000000000000000000000001 ff020000000000000000000000000001 0035 1000 " +
				"0008 0000",
			"0806 0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000002",
			"88b5 0102",
		} {
			add(head + tag + body)
		}
	}
	return frames
}

// expressions use every kind of instruction that the compiler makes.
var expressions = []string{
	"tcp", "udp port 53", "tcp port 443", "port 80", "portrange 400-500", "host 10.0.0.2",
	"src net 10.0.0.0/8 and dst net 192.168.0.0/16", "net fe80::/64",
	"icmp", "icmp[icmptype] = icmp-echo", "arp", "ether proto 0x88b5", "vlan", "vlan 10", "vlan 10 and tcp",
	"vlan 10 and vlan 200 and ip",
	"tcp[tcpflags] & (tcp-syn|tcp-ack) == (tcp-syn|tcp-ack)", "ip[0] & 0xf != 5", "less 70", "greater 100", "len = 64",
	"ip6", "ip6 and not tcp", "ether broadcast",
	"ip[2:2] - ((ip[0] & 0xf) << 2) > 40", "ether[14] ^ 0x60 > 100 or ether[15:4] % 7 = 3", "ip[8] * 2 / 4 = 32",
	"-ether[12] < 0", "ether[100:4] = 0", "tcp[13] >> 1 & 1 = 1",
	"ether[11:2] & 0xff = 8", "ether[13:4] = 0x000a0806 or ether[14:2] | 1 = 0x4501",
}

// TestFiltersMatchWhatTcpdumpMatches compares the program's interpreter with libpcap's: the same frames, the same
// expressions.
func TestFiltersMatchWhatTcpdumpMatches(t *testing.T) {
	testkit.Long(t, "asks tcpdump for each filter; TestCaptureSelectsByPortSegmentStageReasonAndFilter has filters")
	testkit.Tool(t, "tcpdump")
	h := newHost(t, `
  defaults: {security: {forgedTransmits: accept}}
  portGroups: [{name: trunk, vlan: {trunk: ["0-4094"]}}]
`, "vm1 trunk", "tap2 trunk")
	frames := sampleFrames(t)
	file := pcapFile(t, frames)
	h.capture(dataplane.Selection{Snap: 1}) // of nothing: it keeps the program loaded
	for some := range slices.Chunk(expressions, abi.MaxCaptures-1) {
		var running []*dataplane.Capture
		for _, e := range some {
			s := everything()
			s.Stages, s.Filter = []int{abi.CaptureAdmit}, compiled(t, e)
			c, err := h.k.Captures().Start(s, func(f func() error) error { return f() })
			if err != nil {
				t.Fatal(err)
			}
			running = append(running, c)
		}
		before := h.received("vm1")
		for _, f := range frames {
			if err := h.ends["vm1"].inject(f); err != nil {
				t.Fatal(err)
			}
		}
		h.await("the frames are switched", func() bool { return h.received("vm1") == before+uint64(len(frames)) })
		for i, c := range running {
			if d := cmp.Diff(matched(t, file, some[i]), rawFrames(t, c)); d != "" {
				t.Errorf("%s (-tcpdump +heddle):\n%s", some[i], d)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func compiled(t *testing.T, expression string) (f []abi.FilterInstruction) {
	t.Helper()
	p, err := filter.Compile(t.Context(), expression)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range p {
		f = append(f, abi.FilterInstruction{Code: in.Code, JumpTrue: in.JumpTrue, JumpFalse: in.JumpFalse, K: in.K})
	}
	return f
}

// pcapFile writes frames into a file, for tcpdump.
func pcapFile(t *testing.T, frames [][]byte) string {
	t.Helper()
	var b bytes.Buffer
	w := pcapgo.NewWriter(&b)
	if err := w.WriteFileHeader(1<<16, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		if err := w.WritePacket(gopacket.CaptureInfo{CaptureLength: len(f), Length: len(f)}, f); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "frames.pcap")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// matched are the frames of the file that tcpdump lets through.
func matched(t *testing.T, file, expression string) []string {
	t.Helper()
	out, err := exec.Command("tcpdump", "-Z", "root", "-r", file, "-w", "-", "--", expression).Output()
	if err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewReader(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for {
		f, _, err := r.ReadPacketData()
		if err != nil {
			return list
		}
		list = append(list, fmt.Sprintf("%x", f))
	}
}

// rawFrames are the bytes of what a capture holds.
func rawFrames(t *testing.T, c *dataplane.Capture) []string {
	t.Helper()
	list := []string{}
	for {
		f, err := c.Next(time.Now().Add(50 * time.Millisecond))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%x", f.Frame))
	}
}

func TestCaptureCountsWhatItsReaderLosesAndPortsLoseNothing(t *testing.T) {
	testkit.Long(t, "fills captures; TestCaptureShowsEveryStageOfAFrame has captures")
	h := newHost(t, "\n  portGroups: [{name: web}]\n", "vm1 web", "vm2 web")
	c := h.capture(everything())
	quick := h.capture(dataplane.Selection{Stages: []int{abi.CaptureAdmit}, Snap: 14})
	const frames = 8000 // each twice: more than the ring has room for
	frame := wire("vm2 vm1 0800 [1400]")
	before := h.counters()
	for range frames {
		if err := h.ends["vm1"].inject(frame); err != nil {
			t.Fatal(err)
		}
	}
	h.await("the frames are switched", func() bool { return h.received("vm1") == received(before, "vm1")+frames })
	if now := h.counters()["vm1"]; now.Delivered-before["vm1"].Delivered != frames {
		t.Errorf("%d of %d frames were delivered", now.Delivered-before["vm1"].Delivered, frames)
	}
	held := uint64(len(rawFrames(t, c)))
	selected, lost, err := c.Counts()
	if err != nil || selected != 2*frames || lost == 0 || held+lost != selected {
		t.Errorf("selected %d, held %d, lost %d, %v", selected, held, lost, err)
	}
	if selected, lost, err := quick.Counts(); err != nil || selected != frames || lost != 0 ||
		len(rawFrames(t, quick)) != frames {
		t.Errorf("another capture: selected %d, lost %d, %v", selected, lost, err)
	}
}

func TestThereAreOnlySoManyCaptures(t *testing.T) {
	h := newHost(t, "\n  portGroups: [{name: web}]\n", "vm1 web", "vm2 web")
	for range abi.MaxCaptures {
		h.capture(everything())
	}
	if _, err := h.k.Captures().Start(everything(), func(f func() error) error { return f() }); !errors.Is(err,
		dataplane.ErrTooManyCaptures) {
		t.Errorf("one too many: %v", err)
	}
	h.emit("vm1", "vm2 vm1 0800", to("vm2"))
}

func TestCaptureFollowsItsPortAndNotItsPlace(t *testing.T) {
	h := newHost(t, "\n  portGroups: [{name: web}]\n", "vm1 web", "vm2 web", "vm3 web")
	s := everything()
	s.Ports = append(s.Ports, port("vm1"))
	c := h.capture(s)
	h.emit("vm1", "vm2 vm1 0800", to("vm2"))
	if n := len(rawFrames(t, c)); n != 1 {
		t.Errorf("%d frames of the port", n)
	}
	whole := h.plan()
	gone := h.plan()
	gone.Switches[0].Ports = gone.Switches[0].Ports[1:]
	h.inForce(gone)
	h.emit("vm3", "vm2 vm3 0800", to("vm2"))
	h.inForce(whole) // perhaps at another place
	h.emit("vm3", "vm2 vm3 0800", to("vm2"))
	h.emit("vm1", "vm2 vm1 0800", to("vm2"))
	if n := len(rawFrames(t, c)); n != 1 {
		t.Errorf("%d frames after the port was gone and came back", n)
	}
}
