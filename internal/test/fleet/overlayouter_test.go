package fleet

import (
	"bytes"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// TestS84_CapturesShowOuterPackets: what leaves is byte for byte what is on the cable; what arrives is shown whole,
// also a stranger's; tshark reads the file without an error.
func TestS84_CapturesShowOuterPackets(t *testing.T) {
	testkit.Long(t, "TestS84_CapturesShowFramesInTheTunnel has captures at a tunnel")
	testkit.Tool(t, "tshark")
	for _, v6 := range []bool{false, true} {
		t.Run(fmt.Sprintf("IPv6=%v", v6), func(t *testing.T) {
			t.Parallel()
			r := newOverlayRig(t, v6, "db")
			h := r.hosts[0]
			file := filepath.Join(t.TempDir(), "outer.pcapng")
			cmd, said := h.Command("capture", "tunnel", "--outer", "-w", file), &watchedText{}
			cmd.Stderr = said
			if err := h.Launch(cmd); err != nil {
				t.Fatal(err)
			}
			h.Await("the command captures", func() bool { return strings.Contains(said.String(), "capturing") })
			c := h.captures(api.Capture{Ports: []string{"tunnel"}, Outer: true})
			r.outerLeaves(c)
			r.outerArrives(c)
			c.end()
			h.Await("the command has written", func() bool { return len(r.outerRead(file)) >= 4 })
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), ", 0 lost") {
				t.Errorf("%v: %s", err, said)
			}
			r.outerRefused()
		})
	}
}

// outerOf are the outer packets around frames with the text, sorted.
func (c *captureOf) outerOf(text string, out bool) (list [][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.seen {
		if bytes.Contains(f.Data, []byte(text)) && f.Copy == out && f.port == "tunnel" && f.Stage == "" {
			list = append(list, f.Data)
		}
	}
	slices.SortFunc(list, bytes.Compare)
	return list
}

func (r *overlayRig) outerLeaves(c *captureOf) {
	r.t.Helper()
	const text = "an outer packet leaves"
	r.wire.Forget()
	r.guests[0][1].Send(cable.Frame(cable.Broadcast(), cable.MAC(2), 0, text))
	var want [][]byte
	for _, f := range r.wire.Gather("two copies", func(all [][]byte) bool {
		return len(withText(all, text)) == 2
	}) {
		if bytes.Contains(f, []byte(text)) {
			want = append(want, f)
		}
	}
	slices.SortFunc(want, bytes.Compare)
	c.h.Await("the capture has both copies", func() bool { return len(c.outerOf(text, true)) >= 2 })
	if got := c.outerOf(text, true); !slices.EqualFunc(got, want, bytes.Equal) {
		r.t.Errorf("captured\n%x\non the cable\n%x", got, want)
	}
}

func withText(all [][]byte, text string) (list [][]byte) {
	for _, f := range all {
		if bytes.Contains(f, []byte(text)) {
			list = append(list, f)
		}
	}
	return list
}

func (r *overlayRig) outerArrives(c *captureOf) {
	r.t.Helper()
	for _, a := range []struct {
		text, from string
		ns         *netns.NS
		vni        byte
	}{{"an outer packet arrives", r.addr[2], r.third, 136}, {"a stranger's arrives", r.addr[3], r.router, 137}} {
		inner := cable.Frame(cable.Broadcast(), cable.MAC(66), 0, a.text)
		r.vxlan(a.ns, a.from, r.addr[0], 0x1300|uint32(a.vni), inner)
		c.h.Await(a.text, func() bool { return len(c.outerOf(a.text, false)) > 0 })
		got := c.outerOf(a.text, false)
		from := netip.MustParseAddr(a.from).AsSlice()
		if len(got) != 1 || !bytes.HasSuffix(got[0], slices.Concat([]byte{8, 0, 0, 0, 0, 0x13, a.vni, 0}, inner)) ||
			!bytes.Contains(got[0][:42], from) {
			r.t.Errorf("%s: %x", a.text, got)
		}
	}
}

// outerRead are the packets in the file as tshark reads them: VNI, outer ends, what is wrong with it.
func (r *overlayRig) outerRead(file string) (list []string) {
	r.t.Helper()
	out, err := exec.Command("tshark", "-r", file, "-T", "fields", "-e", "vxlan.vni", "-e", "udp.dstport", "-e",
		"_ws.malformed").Output()
	if err != nil {
		return nil // the file is being written
	}
	for line := range strings.Lines(string(out)) {
		vni, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		if rest != "4789\t" {
			r.t.Errorf("tshark reads %q", line)
		}
		list = append(list, vni)
	}
	return list
}

// outerRefused: what outer packets do not have.
func (r *overlayRig) outerRefused() {
	r.t.Helper()
	h := r.hosts[0]
	for _, c := range []struct {
		ask  api.Capture
		want string
	}{
		{api.Capture{Ports: []string{"one"}}, "one has no outer packets, only tunnel has"},
		{api.Capture{Stages: []string{"drop"}}, "an outer packet has not a stage"},
		{api.Capture{Reasons: []string{"tunnel-mtu"}}, "an outer packet has not a reason"},
		{api.Capture{Segments: []string{"vni:5000/10"}}, "selected by their VNI as a whole"},
		{api.Capture{Segments: []string{"10"}}, "selected by their VNI as a whole"},
		{api.Capture{Segments: []string{"vni:7000"}}, "switch lab has no port in VNI 7000"},
		{api.Capture{Filter: []api.FilterInstruction{{Code: 6}}}, "no packet of the tunnel matches the filter"},
		{api.Capture{Filter: []api.FilterInstruction{{Code: 0xffff}}}, "instruction 0 of the filter is unknown"},
		{api.Capture{Switch: "lba"}, "there is no switch lba; did you mean lab?"},
	} {
		c.ask.Outer = true
		err := h.Capture(r.t.Context(), c.ask, func(api.CaptureEvent) error { return nil })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			r.t.Errorf("%+v: %v, want %q", c.ask, err, c.want)
		}
	}
}
