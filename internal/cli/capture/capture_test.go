package capture

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket/pcapgo"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/clitest"
)

// answers is an agent that captures these frames; asked are the requests.
type answers struct {
	api.Service
	captured  []api.CaptureEvent
	capturing func(ctx context.Context, emit func(api.CaptureEvent) error) error
	asked     []any
}

// EndCapture may be asked for although the capture has ended by itself.
func (a *answers) EndCapture(context.Context, api.EndCapture) error { return nil }

func (a *answers) Capture(ctx context.Context, q api.Capture, emit func(api.CaptureEvent) error) error {
	if a.capturing != nil {
		return a.capturing(ctx, emit)
	}
	a.asked = append(a.asked, q)
	for _, e := range a.captured {
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}

// captureWith runs a capture against a stand-in for the agent.
func captureWith(t *testing.T, f *capture, args ...string) (stdout, stderr string, s *answers, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	s = &answers{captured: clitest.CapturedFrames()}
	f.d = cli.Deps{Stdout: &out, Stderr: &errs}
	f.client = s
	if f.out.Format == "" {
		f.out.Format = "text"
	}
	if f.compile == nil {
		f.compile = func(context.Context, string) ([]api.FilterInstruction, error) {
			return []api.FilterInstruction{{Code: 6, K: 1}}, nil
		}
	}
	if err = f.arguments(args); err == nil {
		err = f.run(t.Context())
	}
	return out.String(), errs.String(), s, err
}

func TestCaptureShowsOneLineAFrame(t *testing.T) {
	out, errs, s, err := captureWith(t, &capture{}, "vm1/eth0", "tcp", "port", "80")
	if err != nil {
		t.Fatal(err)
	}
	const about = "  02:00:00:00:00:01 > 02:00:00:00:00:02, type 0x88b5, 60 bytes"
	want := "03:04:05.000001  vm1/eth0 → admit, VLAN 10" + about + "\n" +
		"03:04:05.000002  vm2/eth0 ← deliver, from vm1/eth0, VLAN 10" + about + " (in segments of 1448)\n" +
		"03:04:05.000003  vm1/eth0 ✗ drop forged-transmit" + about + "\n" +
		"03:04:05.000004  vm2/eth0 ✗ drop receiver-down, from vm1/eth0, 802.1ad VLAN 10" + about + "\n" +
		"03:04:05.000005  uplink1 ← deliver, to the host, untagged" + about + "\n" +
		"03:04:05.000006  uplink1 → admit, from the host, VLAN 10" + about + "\n" +
		"03:04:05.000007  vm2/eth0 ← deliver, from the host behind uplink1, VLAN 10" + about + "\n" +
		"03:04:05.000008  no uplink ✗ drop no-uplink, from vm1/eth0, VLAN 10" + about + "\n" +
		"03:04:05.000009  tunnel ← deliver, from vm1/eth0, to 192.0.2.2 by 192.0.2.1, VLAN 10 in VNI 5000" +
		about + "\n" +
		"03:04:05.000010  tunnel ✗ drop tunnel-unknown-endpoint, from 2001:db8::7 at 2001:db8::1, VLAN 10 in " +
		"VNI 5000" + about + "\n" +
		"03:04:05.000011  tunnel → admit, made by this host, VNI 5000" + about + "\n"
	if d := cmp.Diff(want, out); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if errs != "capturing; Ctrl-C ends it\n11 frames captured, 13 selected by the switch, 2 lost because they came "+
		"faster than they were read\n" {
		t.Errorf("at the end: %s", errs)
	}
	asked := s.asked[0].(api.Capture)
	if d := cmp.Diff(api.Capture{Ports: []string{"vm1/eth0"}, Filter: []api.FilterInstruction{{Code: 6, K: 1}}},
		asked); d != "" {
		t.Errorf("asked (-want +got):\n%s", d)
	}
}

func TestCaptureWritesObjects(t *testing.T) {
	out, _, _, err := captureWith(t, &capture{out: cli.Stream{Format: "json"}}, AnyPort)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err != nil || len(lines) != 11 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	for i, want := range []string{
		`"switch":"lab","port":"vm1/eth0","uplink":false,"direction":"in","stage":"admit","vlan":{"kind":"802.1q","id":10},"length":60,"captured":60,"summary":`,
		`"direction":"out","stage":"deliver","from":"vm1/eth0","vlan":{"kind":"802.1q","id":10},"length":60,"captured":60,"gsoSize":1448,`,
		`"direction":"in","stage":"drop","reason":"forged-transmit","length":60`,
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("%s lacks %s", lines[i], want)
		}
	}
	for i, want := range []string{
		`"from":"vm1/eth0","remote":"192.0.2.2","local":"192.0.2.1","vlan":{"kind":"802.1q","id":10,"vni":5000}`,
		`"reason":"tunnel-unknown-endpoint","remote":"2001:db8::7","local":"2001:db8::1","vlan":`,
		`"stage":"admit","made":true,"vlan":{"kind":"untagged","vni":5000}`,
	} {
		if !strings.Contains(lines[8+i], want) {
			t.Errorf("%s lacks %s", lines[8+i], want)
		}
	}
}

func TestCaptureWritesAFileOfItsOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pcapng")
	if _, errs, _, err := captureWith(t, &capture{write: path}); err != nil ||
		!strings.HasPrefix(errs, "capturing; Ctrl-C ends it\n") {
		t.Fatalf("%v, %s", err, errs)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(bytes.NewReader(b), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for {
		_, info, err := r.ReadPacketData()
		if err != nil {
			break
		}
		i, err := r.Interface(info.InterfaceIndex)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, i.Name)
	}
	want := []string{"vm1/eth0", "vm2/eth0", "vm1/eth0", "vm2/eth0", "uplink1", "uplink1", "vm2/eth0", "no uplink",
		"tunnel", "tunnel", "tunnel"}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("interfaces (-want +got):\n%s", d)
	}
	for _, comment := range []string{"port vm1/eth0, in, drop forged-transmit",
		"port vm2/eth0, out, deliver, from vm1/eth0, VLAN 10, in segments of 1448",
		"port tunnel, out, deliver, from vm1/eth0, to 192.0.2.2 by 192.0.2.1, VLAN 10 in VNI 5000",
		"port tunnel, in, admit, made by this host, VNI 5000", "2 frames of all interfaces were lost"} {
		if !bytes.Contains(b, []byte(comment)) {
			t.Errorf("no comment %q", comment)
		}
	}
}

func TestCaptureEndsAfterTheFramesAskedFor(t *testing.T) {
	out, errs, _, err := captureWith(t, &capture{count: 2})
	if err != nil || strings.Count(out, "\n") != 2 || !strings.Contains(errs, "\n2 frames captured, 13 selected") {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
}

func TestCaptureAsksForOverlaySegments(t *testing.T) {
	_, _, s, err := captureWith(t, &capture{vnis: []string{"5000", "6000/10"},
		ask: api.Capture{Segments: []string{"untagged"}}}, "tunnel")
	if err != nil {
		t.Fatal(err)
	}
	want := api.Capture{Ports: []string{"tunnel"}, Segments: []string{"untagged", "vni:5000", "vni:6000/10"}}
	if d := cmp.Diff(want, s.asked[0].(api.Capture)); d != "" {
		t.Errorf("asked (-want +got):\n%s", d)
	}
}

func TestCaptureRefusesWhatMakesNoSense(t *testing.T) {
	for _, c := range []struct {
		f    capture
		args []string
		want string
	}{
		{capture{out: cli.Stream{Format: "xml"}}, nil, `output format "xml": use text, json or yaml`},
		{capture{out: cli.Stream{Format: "json"}, write: "x"}, nil, "use one of them"},
		{capture{filter: "tcp"}, []string{"vm1", "udp"}, `the filter is given twice: "udp" and --filter "tcp"`},
		{capture{ask: api.Capture{Snap: abi.MaxSnap + 1}}, nil, "--snap 65793"},
		{capture{duration: -1}, nil, "not negative"},
	} {
		_, _, s, err := captureWith(t, &c.f, c.args...)
		var usage *cli.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) || len(s.asked) > 0 {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, _, _, err := captureWith(t, &capture{write: filepath.Join(t.TempDir(), "no", "such")}); err == nil {
		t.Error("a file that cannot be written is no error")
	}
}
