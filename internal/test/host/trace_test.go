package host

import (
	"encoding/json"
	"fmt"
	"heddle/internal/diagnose"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

// faultyLab has six faults. vm1 and vm3 are as they should be.
const faultyLab = `switches:
- name: lab
  kind: distributed
  uplinks: [{name: uplink1, device: up1, vlans: ["0-29"]}]
  portGroups:
  - {name: web, vlan: {access: 10}}
  - {name: db, vlan: {access: 20}}
  - {name: far, vlan: {access: 30}}
  - name: nested
    vlan: {access: 10}
    security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 1}}
ports:
- {name: vm1/eth0, switch: lab, portGroup: web, device: tap1, mac: "02:00:00:00:01:01"}
- {name: vm2/eth0, switch: lab, portGroup: db, device: tap2, mac: "02:00:00:00:02:01"}
- {name: vm3/eth0, switch: lab, portGroup: web, device: tap3, mac: "02:00:00:00:03:01"}
- {name: nest/eth0, switch: lab, portGroup: nested, device: tap4, mac: "02:00:00:00:04:01"}
- {name: vm4/eth0, switch: lab, portGroup: far, device: tap5, mac: "02:00:00:00:05:01"}
`

// pageFaults returns the command that the how-to has for each fault, without "heddle".
func pageFaults(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/how-to/faults/where-did-my-packet-go.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, m := range regexp.MustCompile(
		"<!-- fault: ([a-z-]+) -->\n```sh\nheddle ([^\n]+)\n```").FindAllStringSubmatch(string(page), -1) {
		found[m[1]] = strings.Fields(m[2])
	}
	if len(found) != 6 {
		t.Fatalf("the page has the commands of %d faults: %v", len(found), found)
	}
	return found
}

// pageOutputs returns what the how-to shows of each fault's answer.
func pageOutputs(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/how-to/faults/where-did-my-packet-go.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, m := range regexp.MustCompile("<!-- fault: ([a-z-]+) -->\n```sh\n[^\n]+\n```\n\n```\n((?s:.+?))```").
		FindAllStringSubmatch(string(page), -1) {
		found[m[1]] = m[2]
	}
	return found
}

// squashed is a text without its line breaks.
func squashed(s string) string { return strings.Join(strings.Fields(s), " ") }

// traceLab is the faulty lab with its guests, by name.
func traceLab(t *testing.T) (*host, map[string]*netns.NS) {
	t.Helper()
	h, guests := newHost(t), map[string]*netns.NS{}
	for i, name := range []string{"vm1", "vm2", "vm3", "nest", "vm4", "wire"} {
		ns, device := testkit.NS(t, name), fmt.Sprint("tap", i+1)
		if name == "wire" {
			device = "up1"
		}
		h.ip(fmt.Sprintf("link add %s type veth peer name eth0 address 02:00:00:00:0%d:01 netns %s", device, i+1,
			ns.Name))
		h.ip("link set " + device + " up")
		run(t, ns, "ip link set eth0 up")
		run(t, ns, fmt.Sprintf("ip addr add 192.0.2.%d/24 dev eth0", i+1))
		guests[name] = ns
	}
	h.start("--config", h.file("heddle.yaml", faultyLab))
	for _, name := range []string{"vm1", "vm2", "vm3", "nest", "vm4"} {
		h.awaitPort(name+"/eth0", api.Up)
	}
	return h, guests
}

// emit sends a frame from a guest, as it is.
func emit(t *testing.T, from *netns.NS, frame []byte) {
	t.Helper()
	err := from.Do(func() error {
		dev, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(s)
		return unix.Sendto(s, frame, 0, &unix.SockaddrLinklayer{Ifindex: dev.Index, Halen: 6})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// answered runs a trace and returns what it prints and whether it says yes; its status has to say the same.
func (h *host) answered(args ...string) (out string, yes bool) {
	h.t.Helper()
	out, errs, status := h.heddle(args...)
	if status > 1 || errs != "" {
		h.t.Fatalf("%v: status %d, %s", args, status, errs)
	}
	return out, status == 0
}

// traced runs a trace with JSON.
func (h *host) traced(args []string) *diagnose.Report {
	h.t.Helper()
	r := &diagnose.Report{}
	out, yes := h.answered(append(slices.Clone(args), "-o", "json")...)
	if err := json.Unmarshal([]byte(out), r); err != nil {
		h.t.Fatal(err)
	}
	if yes != (r.Answer.Verdict != diagnose.No) {
		h.t.Errorf("%v: the answer is %q and the status says yes: %v", args, r.Answer.Verdict, yes)
	}
	if !r.Agree {
		h.t.Errorf("%v: model and kernel program disagree: %+v", args, r)
	}
	return r
}

// seeded is a fault of the lab: how it comes about, what the trace must name, and whether it is fixed.
type seeded struct {
	name, reason string
	seed         func()
	// edit is what the answer has to say, and how the file's text changes for it; "" = no file is changed.
	edit     string
	old, new string
	fixed    func() bool // nil: the same trace finds the fault no more
}

// TestEachFaultIsSolvedByTheCommandOfTheHowTo: six faults on a live host, each found by the command that the page has
// for it and fixed by the command that the answer gives.
func TestEachFaultIsSolvedByTheCommandOfTheHowTo(t *testing.T) {
	testkit.Long(t, "makes six faults and solves them; TestATraceOfACaptureTakesWhatThePortSent has traces")
	commands := pageFaults(t)
	h, guest := traceLab(t)
	ping := func(from, to string) func() bool { return func() bool { return pings(guest[from], to) } }
	none := func() {}
	text := faultyLab
	for _, f := range []seeded{
		{name: "wrong-vlan", reason: "other-vlan", seed: none, edit: "port vm2/eth0: portGroup: web",
			old: "{name: vm2/eth0, switch: lab, portGroup: db", new: "{name: vm2/eth0, switch: lab, portGroup: web",
			fixed: func() bool { // and the port is as the file says
				return pings(guest["vm1"], "192.0.2.2") && len(h.port("vm2/eth0").Overrides) == 0
			}},
		{name: "forged-transmit", reason: "forged-transmit", seed: none,
			edit: "port group web of switch lab: security: {forgedTransmits: accept}",
			old:  "{name: web, vlan: {access: 10}}", new: "{name: web, vlan: {access: 10}, security: " +
				"{forgedTransmits: accept}}"},
		{name: "mac-limit", reason: "mac-limit", edit: "port group nested of switch lab: security: {macLearning: " +
			"{limit: 16}}", old: "limit: 1}", new: "limit: 16}",
			seed: func() {
				emit(t, guest["nest"], append([]byte("\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x04\x0a\x88\xb5"),
					make([]byte, 46)...))
				h.await("the address is learned", func() bool {
					return strings.Contains(h.must("mac", "list", "--learned"), "02:00:00:00:04:0a")
				})
			}},
		{name: "uplink-vlan", reason: "uplink-vlan", seed: none, edit: `uplink uplink1 of switch lab: vlans: ["0-30"]`,
			old: `"0-29"`, new: `"0-30"`},
		{name: "blocked", reason: "receiver-blocked", seed: func() { h.must("port", "block", "vm3/eth0") },
			fixed: ping("vm1", "192.0.2.3")},
		{name: "mtu", reason: "mtu-exceeded", seed: func() {
			h.ip("link set tap3 mtu 1400")
			h.await("the MTU is seen", func() bool { return h.port("vm3/eth0").MTU == 1400 })
		}, fixed: func() bool { return h.port("vm3/eth0").MTU == 1500 }},
	} {
		t.Run(f.name, func(t *testing.T) { text = f.solve(t, h, commands[f.name], text) })
	}
}

// solve finds the fault and fixes it; it gives the configuration's text as it is then.
func (f seeded) solve(t *testing.T, h *host, command []string, text string) string {
	f.seed()
	out, yes := h.answered(command...)
	answer, _, _ := strings.Cut(out, "\n  policy:")
	if yes || !strings.HasPrefix(answer, "no: ") || !strings.Contains(squashed(answer), "("+f.reason+")") {
		t.Errorf("the answer is not first, or the status says yes: %v\n%s", yes, out)
	}
	if shown := pageOutputs(t)[f.name]; shown == "" ||
		!strings.HasPrefix(squashed(strings.ReplaceAll(out, h.dir+"/", "")), squashed(shown)) {
		t.Errorf("the page does not have the beginning of\n%s", out)
	}
	for line := range strings.Lines(out) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 100 && !strings.HasPrefix(line, "  command:") {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	cause := f.cause(h.traced(command))
	if cause == nil {
		t.Fatalf("no %s in\n%s", f.reason, out)
	}
	if f.edit != "" {
		if cause.Edit == nil || cause.Edit.Object()+": "+cause.Edit.Set != f.edit {
			t.Fatalf("edit %+v, want %s", cause.Edit, f.edit)
		}
		text = strings.Replace(text, f.old, f.new, 1)
		h.file("heddle.yaml", text)
	}
	if words := strings.Fields(cause.Command); words[0] == "heddle" {
		h.must(words[1:]...)
	} else {
		run(t, h.ns, cause.Command)
	}
	fixed := f.fixed
	if fixed == nil {
		fixed = func() bool { return f.cause(h.traced(command)) == nil }
	}
	h.await(f.name+" is fixed by "+cause.Command, fixed)
	return text
}

// cause is the cause of the fault's reason.
func (f seeded) cause(r *diagnose.Report) *diagnose.Cause {
	var all []diagnose.Cause
	if r.Talk != nil {
		all = r.Talk.Causes
	}
	for _, x := range r.Frames {
		all = append(all, x.Causes...)
	}
	if i := slices.IndexFunc(all, func(c diagnose.Cause) bool { return c.Reason == f.reason }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Traffic changes the tables while they are copied: a trace is made again rather than tell of a disagreement that there
// is not.
func TestATraceUnderTrafficFindsNoDisagreement(t *testing.T) {
	testkit.Long(t, "traces again and again under traffic; TestATraceOfACaptureTakesWhatThePortSent has traces")
	h, guest := traceLab(t)
	stop, done := make(chan struct{}), make(chan struct{})
	var sent atomic.Int64
	go func() {
		defer close(done)
		frame := append([]byte("\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x04\x00\x88\xb5"), make([]byte, 46)...)
		for {
			select {
			case <-stop:
				return
			default:
				frame[11] = byte(sent.Add(1))
				emit(t, guest["nest"], frame)
			}
		}
	}()
	deadline := time.Now().Add(patience)
	for i := 0; i < 4 || sent.Load() < 100; i++ { // on a busy machine the frames may be slower than the traces
		if time.Now().After(deadline) {
			t.Errorf("only %d frames were sent meanwhile", sent.Load())
			break
		}
		src := fmt.Sprintf("02:00:00:00:04:%02x", 60*i%256)
		h.traced([]string{"trace", "--from", "nest/eth0", "--to", "vm1/eth0", "--src-mac", src})
	}
	close(stop)
	<-done
}

// TestEndsOfATraceAreNamedByAddress: on a live host a port's own and a learned MAC, and the IP address of a host port,
// of the host's neighbour, of a refused frame and of a metered flow, name the ends; else it is said where was looked.
func TestEndsOfATraceAreNamedByAddress(t *testing.T) {
	testkit.Long(t, "waits for what each address is known by; TestATraceOfACaptureTakesWhatThePortSent has traces")
	h, guest := traceLab(t)
	want := func(r *diagnose.Report, from, to string) {
		t.Helper()
		if r.From != "lab/"+from || r.To != "lab/"+to || r.Answer.Verdict != diagnose.Yes {
			t.Errorf("from %s to %s: %+v, want %s to %s", r.From, r.To, r.Answer, from, to)
		}
	}
	want(h.traced([]string{"trace", "02:00:00:00:01:01", "02:00:00:00:03:01"}), "vm1/eth0", "vm3/eth0")
	emit(t, guest["nest"], append([]byte("\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x04\x0a\x88\xb5"),
		make([]byte, 46)...))
	h.await("the address is learned", func() bool {
		return strings.Contains(h.must("mac", "list", "--learned"), "02:00:00:00:04:0a")
	})
	want(h.traced([]string{"trace", "vm1/eth0", "02:00:00:00:04:0a"}), "vm1/eth0", "nest/eth0")

	_, errs, status := h.heddle("trace", "192.0.2.1", "192.0.2.3")
	if status != 1 || !strings.Contains(errs, "it is not known which port has 192.0.2.1") ||
		!strings.Contains(errs, "no port is metered") {
		t.Errorf("status %d: %s", status, errs)
	}
	text := strings.Replace(faultyLab, "{name: far, vlan: {access: 30}}",
		"{name: far, vlan: {access: 30}, security: {addressGuard: {enabled: true}}}", 1) +
		"- {name: vmk0, switch: lab, portGroup: web, role: host, addresses: [192.0.2.254/24]}\n"
	h.must("apply", "-f", h.file("heddle.yaml", text))
	h.await("the host reaches vm1", func() bool { return pings(h.ns, "192.0.2.1") })
	r := h.traced([]string{"trace", "192.0.2.1", "192.0.2.254"})
	want(r, "vm1/eth0", "vmk0")
	if !slices.Equal(r.Notes[:2], []string{"192.0.2.1 is at port vm1/eth0: the host's neighbour",
		"192.0.2.254 is at port vmk0: the host port's address"}) {
		t.Errorf("notes %q", r.Notes)
	}

	h.await("the guard's refusal shows the address", func() bool {
		reaches(guest["vm4"], "192.0.2.200")
		_, errs, _ := h.heddle("trace", "192.0.2.5", "vm1/eth0")
		return errs == ""
	})
	r = h.traced([]string{"trace", "192.0.2.5", "vm1/eth0"})
	if r.From != "lab/vm4/eth0" || r.Answer.Reason != "arp-sender-not-allowed" ||
		r.Notes[0] != "192.0.2.5 is at port vm4/eth0: frames in its name were refused there" {
		t.Errorf("from %s: %+v, notes %q", r.From, r.Answer, r.Notes)
	}

	h.must("apply", "-f", h.file("heddle.yaml", strings.Replace(text, "{name: web, vlan: {access: 10}}",
		"{name: web, vlan: {access: 10}, monitoring: {ipfix: true}}", 1)))
	h.await("flows show the addresses", func() bool {
		pings(guest["vm1"], "192.0.2.3")
		_, _, status := h.heddle("trace", "192.0.2.1", "192.0.2.3")
		return status == 0
	})
	r = h.traced([]string{"trace", "192.0.2.1", "192.0.2.3"})
	want(r, "vm1/eth0", "vm3/eth0")
	if !slices.Contains(r.Notes, "192.0.2.1 is at port vm1/eth0: flows come from it") {
		t.Errorf("notes %q", r.Notes)
	}
}

// TestATraceOfACaptureTakesWhatThePortSent: of a conversation that "heddle capture -w" recorded in both directions, the
// port's own frames are traced and its peer's answers are not.
func TestATraceOfACaptureTakesWhatThePortSent(t *testing.T) {
	h, guest := traceLab(t)
	both := h.recordCapture("vm1/eth0")
	if !pings(guest["vm1"], "192.0.2.3") {
		t.Fatal("no answer")
	}
	both.end()
	r := h.traced([]string{"trace", "--pcap", both.file})
	if r.From != "lab/vm1/eth0" || r.Answer.Verdict != diagnose.Yes || len(r.Frames) < 2 {
		t.Errorf("from %s: %+v, %d frames", r.From, r.Answer, len(r.Frames))
	}
	for _, f := range r.Frames {
		if !strings.HasPrefix(f.Summary, "02:00:00:00:01:01 → ") {
			t.Errorf("traced: %s", f.Summary)
		}
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "left the switch") {
		t.Errorf("nothing is said of what left the switch: %q", r.Notes)
	}
}
