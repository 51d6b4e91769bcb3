package host

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/diagnose/doctor"
)

// examine is what "heddle doctor" finds, apart from what the test's own temporary places and this machine's own
// settings bring about.
func (h *host) examine(file string) (found []doctor.Finding, status int) {
	h.t.Helper()
	out, errs, status := h.heddle("doctor", "--config", file, "-o", "json")
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		h.t.Fatalf("%v\n%s%s", err, out, errs)
	}
	var kept []doctor.Finding
	for _, f := range found {
		if f.Check != "bridge netfilter" && f.Level != doctor.OK && f.Level != doctor.Unknown {
			kept = append(kept, f)
		}
	}
	return kept, status
}

func TestDoctorIsSilentOnASoundHostAndFindsWhatIsWrongOnAnother(t *testing.T) {
	h := newHost(t)
	h.guest("up1", "02:00:00:00:00:f1", "198.51.100.1/24")
	h.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24")
	b := h.guest("pb", "02:00:00:00:00:0b", "192.0.2.11/24")
	h.ip("link set lo up")
	file := h.file("heddle.yaml", strings.Replace(twoGuests, "name: lab", "name: lab\n    uplinks: [{name: u1, "+
		"device: up1}]", 1)+
		"  - {name: vmk0, switch: lab, portGroup: web, role: host, addresses: [192.0.2.1/24]}\n")
	h.start("--config", file)
	for _, p := range []string{"a", "b", "vmk0"} {
		h.awaitPort(p, api.Up)
	}
	h.await("uplink up", func() bool { return strings.Contains(h.must("uplink", "list"), " up ") })
	if found, status := h.examine(file); len(found) > 0 || status != 0 {
		t.Errorf("a sound host: status %d, %+v", status, found)
	}

	// Everything here is real: devices, their masters and uppers, MTUs, addresses, programs.
	run(t, b, "ip link set eth0 mtu 9000")
	h.ip("link set up1 mtu 1400")
	h.ip("link add br9 type bridge")
	h.ip("link set pa master br9")
	h.ip("link add link up1 name mv9 type macvlan mode bridge")
	h.ip("addr add 192.0.2.77/24 dev br9")
	spy := attachSpy(t, h, "pb")
	defer spy.Close()
	h.file("heddle.yaml", "switches: [{nam: lab}]\n")
	found, status := h.examine(file)
	if status != 1 {
		t.Errorf("status %d", status)
	}
	for _, want := range []struct {
		check, text string
		level       doctor.Level
	}{
		{"mtu", "adapter has MTU 9000", doctor.Wrong}, {"mtu", "up1 has MTU 1400", doctor.Wrong},
		{"other owners", "bridge br9", doctor.Wrong},
		{"other owners", "mv9 on top of device up1", doctor.Wrong}, {"host interfaces", "vmk0 and br9", ""},
		{"other programs", "tcx program spy", doctor.Note},
		{"configuration", "nam", doctor.Wrong},
	} {
		if !hasFinding(found, want.check, want.level, want.text) {
			t.Errorf("not found: %+v\nfound: %+v", want, found)
		}
	}

	h.ip("link del up1")
	h.await("the uplink's device is missed", func() bool {
		found, _ := h.examine(file)
		return hasFinding(found, "uplinks", doctor.Wrong, "no device up1")
	})
	h.kill(syscall.SIGKILL)
	found, status = h.examine(file)
	if status != 1 || !hasFinding(found, "agent", doctor.Wrong, "does not run") ||
		!hasFinding(found, "pins", doctor.Wrong, h.name) {
		t.Errorf("without its agent: status %d, %+v", status, found)
	}
	out, _, _ := h.heddle("doctor", "--config", file)
	for line := range strings.Lines(out) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 && len(strings.Fields(line)) > 4 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// hasFinding: any level counts when level is "".
func hasFinding(found []doctor.Finding, check string, level doctor.Level, text string) bool {
	for _, f := range found {
		if f.Check == check && (level == "" || f.Level == level) && strings.Contains(f.Text, text) && f.Remedy != "" {
			return true
		}
	}
	return false
}

// attachSpy attaches a program that is not the switch's, which lets every frame pass on.
func attachSpy(t *testing.T, h *host, device string) link.Link {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "spy", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var l link.Link
	err = h.ns.Do(func() error {
		d, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		l, err = link.AttachTCX(link.TCXOptions{Interface: d.Attrs().Index, Program: p, Attach: ebpf.AttachTCXIngress})
		return err
	})
	if err != nil {
		t.Fatal(fmt.Errorf("attach a program to %s: %w", device, err))
	}
	return l
}
