package host

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

// known is traffic of every kind: broadcast, unicast, large frames, tags, the host's port, and frames that are dropped.
func known(t *testing.T, h *host, g map[string]*netns.NS) {
	t.Helper()
	for _, to := range []string{"10.8.0.2", "10.8.0.5"} {
		if !pings(g["vm1/eth0"], to) {
			t.Errorf("no answer from %s", to)
		}
	}
	transfer(t, g["vm2/eth0"], g["vm1/eth0"], "10.8.0.1:0", 2<<20)
	for _, f := range []struct{ at, frame string }{
		{"vm3/eth0", "ffffffffffff 02000000 0c03 8100 600a 88b5 01"}, // to the access port, and back
		{"vm4/eth0", "02000000 0c03 02000000 0c04 88b5 02"},
		{"vm3/eth0", "02000000 0c04 02000000 0c03 8100 000a 8100 0007 88b5 03"},
		{"vm3/eth0", "02000000 0c01 02000000 0c03 88b5 04"},
		{"vm3/eth0", "ffffffffffff 02000000 0c03 8100 0063 88b5 05"},  // vlan-not-allowed
		{"vm1/eth0", "02000000 0c02 02000000 0cff 88b5 06"},           // forged-transmit
		{"vm1/eth0", "02000000 0c02 02000000 0c01 8100 000a 88b5 07"}, // guest-tagged
		{"vm1/eth0", "0180c2000000 02000000 0c01 0026 4242 03"},       // guest-bpdu
		{"vm1/eth0", "02000000 0c02 01000000 0c01 88b5 08"},           // source-group
		{"vm1/eth0", "02000000 0c02 000000000000 88b5 09"},            // source-zero
		{"vm1/eth0", "02000000 0c01 02000000 0c01 88b5 0a"},           // own-destination
		{"vm4/eth0", "02000000 0c99 02000000 0c04 88b5 0b"},           // unknown-unicast
	} {
		sendRaw(t, g[f.at], "eth0", f.frame)
	}
}

// TestCaptureIsWhatTcpdumpInTheGuestsSees is the promise of "heddle capture": with --stage admit,deliver a port shows
// what tcpdump shows its owner, frame by frame.
func TestCaptureIsWhatTcpdumpInTheGuestsSees(t *testing.T) {
	testkit.Tool(t, "tcpdump", "tshark")
	h, guests := captureHost(t)
	owners := map[string]*recording{"vmk0": tcpdump(t, h.ns, "vmk0")}
	for name, ns := range guests {
		owners[name] = tcpdump(t, ns, "eth0")
	}
	all := h.recordCapture("any", "--stage", "admit,deliver")
	drops := h.recordCapture("any", "--stage", "drop")
	known(t, h, guests)
	for name, ns := range guests {
		sendRaw(t, ns, "eth0", lastFrame(name[2], ""))
	}
	for name, r := range owners {
		h.await("the last frames are recorded at "+name, func() bool { return r.has(lastOf(name)) })
	}
	if said := all.end(); !strings.Contains(said, " 0 lost") {
		t.Errorf("frames were lost: %s", said)
	}
	drops.end()
	got := all.byInterface()
	for name, r := range owners {
		r.end()
		want := r.packets()
		slices.Sort(want)
		slices.Sort(got[name])
		if d := cmp.Diff(want, got[name]); d != "" {
			t.Errorf("%s (-tcpdump +heddle): %.3000s", name, d)
		}
		if len(want) < 4 {
			t.Errorf("%s: only %d frames are compared", name, len(want))
		}
	}
	checkDissection(t, drops)
}

// lastFrame is the text that guest vmN sends last, by the same ways as everything before; tag is what a trunk puts
// in.
func lastFrame(n byte, tag string) string {
	return fmt.Sprintf("ffffffffffff 02000000 0c0%c %s 88b5 ffff", n, tag)
}

// lastOf are the beginnings of the last frames that an owner sees: its own, and those of its segments.
func lastOf(owner string) (all []string) {
	plain := func(n byte) string { return strings.ReplaceAll(lastFrame(n, ""), " ", "") }
	switch owner {
	case "vm4/eth0":
		return []string{plain('4')}
	case "vm3/eth0":
		all = append(all, strings.ReplaceAll(lastFrame('4', "8100 000a"), " ", ""))
	}
	return append(all, plain('1'), plain('2'), plain('3'))
}

// checkDissection reads the file with tshark, an independent reader of its format: interfaces, comments, directions.
func checkDissection(t *testing.T, drops *recording) {
	t.Helper()
	out, err := exec.Command("tshark", "-r", drops.file, "-T", "fields", "-E", "separator=|", "-e",
		"frame.interface_name", "-e", "frame.comment", "-e", "frame.packet_flags_direction").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{
		"vm1/eth0|port vm1/eth0, in, drop forged-transmit, untagged|0x00000001",
		"vm1/eth0|port vm1/eth0, in, drop guest-tagged|0x00000001",
		"vm1/eth0|port vm1/eth0, in, drop guest-bpdu",
		"vm1/eth0|port vm1/eth0, in, drop source-group",
		"vm1/eth0|port vm1/eth0, in, drop source-zero",
		"vm1/eth0|port vm1/eth0, in, drop own-destination",
		"vm3/eth0|port vm3/eth0, in, drop vlan-not-allowed, VLAN 99",
		"vm4/eth0|port vm4/eth0, in, drop unknown-unicast, VLAN 10",
	} {
		if strings.Count(string(out), want) != 1 {
			t.Errorf("not once in what tshark reads: %q\n%s", want, out)
		}
	}
}
