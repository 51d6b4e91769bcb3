package tree

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/cli"
	"heddle/internal/diagnose"
	"heddle/internal/plan"
)

// twoFrames is a pcap file with two frames of 14 bytes.
const twoFrames = "\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x00\x00\x01\x00\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x0e\x00\x00\x00\x0e\x00\x00\x00\x02\x00\x00\x00\x00\x02" +
	"\x02\x00\x00\x00\x00\x01\x88\xb5" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x0e\x00\x00\x00\x0e\x00\x00\x00\x02\x00\x00\x00\x00\x03" +
	"\x02\x00\x00\x00\x00\x01\x88\xb5"

func TestTraceFlagsMakeTheRequest(t *testing.T) {
	s := &standIn{trace: diagnose.Report{From: "lab/vm1", Frames: []diagnose.Frame{{Kernel: "agrees"}}, Agree: true}}
	c := newConsole(t, s)
	file := filepath.Join(t.TempDir(), "vm1.pcap")
	if err := os.WriteFile(file, []byte(twoFrames), 0o600); err != nil {
		t.Fatal(err)
	}
	first, second := []byte(twoFrames[40:54]), []byte(twoFrames[70:84])
	vlan, outer, kind, dst, src := uint16(10), uint16(100), uint16(0x88cc), plan.MAC{2, 0, 0, 0, 0, 2}, plan.MAC{2, 0,
		0, 0, 0, 9}
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for line, want := range map[string]diagnose.Request{
		"--from vm1 --to vm2":              {From: "vm1", To: "vm2"},
		"vm1 vm2":                          {From: "vm1", To: "vm2"},
		"192.0.2.1 --to 02:00:00:00:00:02": {From: "192.0.2.1", To: "02:00:00:00:00:02"},
		"vm1 --from vm1 vm2":               {From: "vm1", To: "vm2"},
		"--from vm1 --to vm2 --ip 192.0.2.1,192.0.2.2 --tcp 443": {From: "vm1", To: "vm2",
			Frame: &diagnose.Fields{IP: &diagnose.Addresses{Src: a, Dst: b}, TCP: &diagnose.Ports{Dst: 443}}},
		"--from vm1 --ip 192.0.2.2 --udp 53,5353 --length 100": {From: "vm1",
			Frame: &diagnose.Fields{IP: &diagnose.Addresses{Dst: b}, UDP: &diagnose.Ports{Src: 53, Dst: 5353},
				Length: 100}},
		"--from vm1 --arp 192.0.2.2": {From: "vm1",
			Frame: &diagnose.Fields{ARP: &diagnose.Addresses{Dst: b}}},
		"--from u1 --vlan 10 --qinq 100 --to vm2 --ethertype 0x88cc": {From: "u1", To: "vm2",
			Frame: &diagnose.Fields{VLAN: &vlan, Outer: &outer, EtherType: &kind}},
		"--from vm1 --dst-mac 02:00:00:00:00:02 --src-mac 02:00:00:00:00:09": {From: "vm1",
			Frame: &diagnose.Fields{DstMAC: &dst, SrcMAC: &src}},
		"--from vm1 --to vm2 --ip6 2001:db8::2 --icmp": {From: "vm1", To: "vm2",
			Frame: &diagnose.Fields{IP: &diagnose.Addresses{Dst: netip.MustParseAddr("2001:db8::2")}, ICMP: true}},
		"--from vm1 --hex 02000000000202000000000188b5": {From: "vm1", Frames: [][]byte{first}},
		"--from vm1 --pcap " + file:                     {From: "vm1", Frames: [][]byte{first, second}},
		"--from vm1 --packet 2 --pcap " + file:          {From: "vm1", Frames: [][]byte{first, second}, Packet: 2},
	} {
		s.asked = nil
		if _, errs, status := c.run(append([]string{"trace"}, strings.Fields(line)...)...); status != cli.ExitOK {
			t.Errorf("%s: %s", line, errs)
			continue
		}
		if d := cmp.Diff([]any{want}, s.asked, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
			t.Errorf("%s (-want +got):\n%s", line, d)
		}
	}
}

func TestTraceMistakesAreToldAndAskNobody(t *testing.T) {
	s := &standIn{}
	c := newConsole(t, s)
	file := filepath.Join(t.TempDir(), "x.pcap")
	if err := os.WriteFile(file, []byte(twoFrames), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"": "say where the frame enters: a port, an uplink, or the address of a " +
			"guest",
		"vm1 --from vm2": "--from vm2 and the argument vm1 name the same end: leave one of " +
			"them out",
		"vm1 vm3 --to vm2": "--to vm2 and the argument vm3 name the same end: leave one of them out",
		"--pcap " + file: "the file does not say by which port its frames entered: give the " +
			"port as the first argument",
		"--from vm1 --hex ff --pcap x":         "--hex and --pcap exclude each other",
		"--from vm1 --hex ff --vlan 3":         "a frame from --hex or --pcap is taken as it is: leave out --vlan",
		"--from vm1 --packet 1":                "--packet is the number of a frame of --pcap, counted from 1",
		"--from vm1 --pcap x --packet 0":       "--packet is the number of a frame of --pcap, counted from 1",
		"--from vm1 --packet 3 --pcap " + file: "--packet 3: the file has 2",
		"--from vm1 --hex xy":                  `--hex: line 1: "x" is not a hexadecimal digit`,
		"--from vm1 --ip 1.2.3.4 --ip6 ::1":    "--ip and --ip6 exclude each other",
		"--from vm1 --ip ::1":                  `--ip: "::1" is not an IPv4 address`,
		"--from vm1 --ip6 1.2.3.4":             `--ip6: "1.2.3.4" is not an IPv6 address`,
		"--from vm1 --ip 1.2.3.4,":             `--ip: "1.2.3.4,": give the destination, or source and destination with a comma between them`,
		"--from vm1 --ip 1.2.3.4 --tcp 0":      `--tcp: "0": give the destination port, or source and destination port with a comma between them, each 1–65535`,
		"--from vm1 --ip 1.2.3.4 --tcp x":      `--tcp: "x": give the destination port, or source and destination port with a comma between them, each 1–65535`,
		"--from vm1 --dst-mac 1":               `--dst-mac: "1" is not a MAC address such as 02:00:00:00:01:01`,
		"--from vm1 --to vm2 --ethertype LLDP": `--ethertype: "LLDP" is not a type such as 0x88cc`,
		"--from vm1 --to vm2 --length 13":      "--length 13: a frame has at least 14 bytes",
		"--from vm1 --to vm2 --length -1":      "--length -1: a frame has at least 14 bytes",
		"--from vm1 --pcap /nowhere/at/all":    "open /nowhere/at/all: no such file or directory",
		"--from vm1 --to vm2 extra":            "--from vm1 and the argument extra name the same end",
		"vm1 vm2 vm3":                          "heddle trace takes at most FROM TO; 3 given",
		"--from vm1 --to vm2 -o xml":           `output format "xml": use table, json or yaml`,
	} {
		_, errs, status := c.run(append([]string{"trace"}, strings.Fields(line)...)...)
		if status != cli.ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %swant %s", line, status, errs, want)
		}
	}
	if len(s.asked) > 0 {
		t.Errorf("the agent was asked: %v", s.asked)
	}
}

// The output for people is at most as wide as a table, except for the command, which must stay whole to be copied; a
// disagreement with the kernel is reported and is a failure.
func TestATraceIsToldWithinTheWidthOfATable(t *testing.T) {
	long := strings.Repeat("many words ", 20)
	s := &standIn{trace: diagnose.Report{From: "lab/vm1", Notes: []string{long}, Answer: diagnose.Answer{
		Verdict: diagnose.No, Text: "nobody gets the frame: " + long}, Frames: []diagnose.Frame{{
		Number: 1, Summary: "02:00:00:00:00:01 → everybody, " + long, Length: 60, Assumed: []string{long},
		Reason: "forged-transmit", Kernel: "disagrees",
		Steps: []diagnose.Step{{Stage: "admit", Text: long}, {Stage: "admit", Text: "second"}},
		Causes: []diagnose.Cause{{Reason: "forged-transmit", Why: long, Policy: "security.forgedTransmits",
			Value: "reject", From: "port group web", Change: long, Edit: &diagnose.Edit{File: "lab.yaml", Switch: "lab",
				Kind: diagnose.EditGroup, Name: "web", Set: "security: {forgedTransmits: accept}"},
			Command: "heddle apply -f " + strings.Repeat("x", 120)}},
		Differences: []string{"the model says delivered, the kernel program dropped (forged-transmit)"},
	}}}}
	out, _, status := newConsole(t, s).run("trace", "--from", "vm1", "--to", "vm2")
	if status != cli.ExitFailure {
		t.Errorf("status %d", status)
	}
	for line := range strings.Lines(out) {
		if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > cli.TableWidth &&
			!strings.HasPrefix(line, "  command: ") {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
	for _, want := range []string{
		"no: nobody gets the frame: many words", "\n    many words",
		"\ndropped (forged-transmit): nobody gets it\n", "\n  policy:  security.forgedTransmits = reject\n",
		"\n  set by:  port group web\n",
		"\n  edit:    in lab.yaml, port group web of switch lab: security: {forgedTransmits: accept}\n",
		"\n  command: heddle apply -f xxx",
		"\nmodel and kernel program disagree: this is a fault of Heddle",
		"\n  the model says delivered, the kernel program dropped (forged-transmit)\n", "\n          second\n",
		"\nnote: many",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestSeveralFramesAreToldInALineEach(t *testing.T) {
	s := &standIn{trace: diagnose.Report{From: "lab/vm1", Agree: true, Frames: []diagnose.Frame{
		{Number: 1, Length: 60, Summary: "a → b", Delivered: true, Copies: []diagnose.Copy{{To: "vm2"}, {To: "u1"}},
			Kernel: "agrees"},
		{Number: 2, Length: 1514, Summary: "a → c", Reason: "mtu-exceeded", Kernel: "agrees"},
	}}}
	out, _, _ := newConsole(t, s).run("trace", "--from", "vm1", "--to", "vm2")
	want := `PACKET  BYTES  OUTCOME       TO      FRAME
     1     60  delivered     vm2,u1  a → b
     2   1514  mtu-exceeded  -       a → c

one of them in full: --packet N
`
	if out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}

// TestTheAnswerOfATraceComesFirst: the sentence, then what changes it, then the details; the exit status says the same.
func TestTheAnswerOfATraceComesFirst(t *testing.T) {
	other := diagnose.Cause{Reason: "no-uplink", Why: "none is usable", Policy: "teaming.active", From: "switch lab",
		Change: "Bring one back.", Command: "heddle uplink list"}
	moved := diagnose.Cause{Reason: "other-vlan", Port: "vm2", Why: "the frame is in VLAN 10", Policy: "vlan",
		Value: "access 20", From: "port group db", Change: "Put the port into another port group.",
		Command: "heddle port move vm2 --port-group web"}
	talk := &diagnose.Talk{Protocols: []diagnose.Protocol{{Name: "ARP", Verdict: diagnose.No,
		Path: "request from vm1"}},
		Hops: []diagnose.Hop{{Protocol: "ARP", Frame: "request", From: "vm1", To: "vm2", Verdict: diagnose.No,
			Path: "-", Reason: "other-vlan", Kernel: "agrees"}},
		Causes: []diagnose.Cause{other, moved}}
	for name, x := range map[string]struct {
		answer diagnose.Answer
		args   []string
		want   string
		status int
	}{
		"no": {diagnose.Answer{Verdict: diagnose.No, Text: "vm1 does not reach vm2 because of the VLAN",
			Reason: "other-vlan", Fix: "heddle port move vm2 --port-group web"}, nil,
			`no: vm1 does not reach vm2 because of the VLAN; fix: heddle port move vm2 --port-group web
  policy:  vlan = access 20
  set by:  port group db
  change:  Put the port into another port group.
  command: heddle port move vm2 --port-group web

lab/vm1 and lab/vm2

ARP   no       request from vm1

FRAME        FROM  TO   ARRIVES  PATH
ARP request  vm1   vm2  no       other-vlan

why nobody (no-uplink): none is usable
  policy:  teaming.active
  set by:  switch lab
  change:  Bring one back.
  command: heddle uplink list
`, cli.ExitFailure},
		"yes": {diagnose.Answer{Verdict: diagnose.Yes, Text: "vm1 reaches vm2"}, []string{"-v"},
			"yes: vm1 reaches vm2\n\nlab/vm1 and lab/vm2\n", cli.ExitOK},
		"unknown": {diagnose.Answer{Verdict: diagnose.Unknown, Text: "it leaves"}, nil, "unknown: it leaves\n\n",
			cli.ExitOK},
	} {
		t.Run(name, func(t *testing.T) {
			s := &standIn{trace: diagnose.Report{From: "lab/vm1", To: "lab/vm2", Agree: true, Answer: x.answer,
				Talk: talk}}
			out, errs, status := newConsole(t, s).run(append([]string{"trace", "vm1", "vm2"}, x.args...)...)
			if !strings.HasPrefix(out, x.want) || status != x.status || errs != "" {
				t.Errorf("status %d, %s\n%s\nwant %d\n%s", status, errs, out, x.status, x.want)
			}
			if said := strings.Contains(out, "model and kernel program agree"); said != (len(x.args) > 0) {
				t.Errorf("agreement is said: %v\n%s", said, out)
			}
		})
	}
}

// The result of the comparison with the kernel program is a code; the command makes the sentence.
func TestTraceSaysWhyTheKernelProgramWasNotAsked(t *testing.T) {
	for says, want := range map[diagnose.KernelSays]string{
		diagnose.KernelAgrees:   "model and kernel program agree",
		diagnose.KernelNone:     "by the model; the kernel program was not asked: there is none here",
		diagnose.KernelTooShort: "it is never given less than an Ethernet header",
	} {
		t.Run(string(says), func(t *testing.T) {
			s := &standIn{trace: diagnose.Report{From: "lab/vm1", Agree: true,
				Frames: []diagnose.Frame{{Number: 1, Kernel: says, Delivered: true}}}}
			out := newConsole(t, s).must("trace", "--from", "vm1", "--hex", "00", "--verbose")
			if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		})
	}
}
