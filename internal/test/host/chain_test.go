package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/api"
	"heddle/internal/diagnose/doctor"
	"heddle/internal/observe/event"
	"heddle/internal/test/testkit"
)

// thief attaches a program at the head of a device's chain that sends every frame to another device. Its name is like
// one of the switch's own.
func (h *host) thief(from, to string) link.Link {
	h.t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "heddle_ingress", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R1, int32(indexOf(h.t, h.ns, to))), asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call(),
			asm.Return()}})
	if err != nil {
		h.t.Fatal(err)
	}
	defer p.Close()
	var l link.Link
	index := indexOf(h.t, h.ns, from)
	err = h.ns.Do(func() (err error) {
		l, err = link.AttachTCX(link.TCXOptions{Interface: index, Program: p, Attach: ebpf.AttachTCXIngress,
			Anchor: link.Head()})
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = l.Close() })
	return l
}

// chain are the ids of the links on a device where frames come in, in the order they run.
func (h *host) chain(device string) (ids []link.ID) {
	h.t.Helper()
	err := h.ns.Do(func() error {
		d, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		q, err := link.QueryPrograms(link.QueryOptions{Target: d.Index, Attach: ebpf.AttachTCXIngress})
		if err != nil {
			return err
		}
		for _, p := range q.Programs {
			id, _ := p.LinkID()
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return ids
}

// ownLink is the id of the agent's link to a device where frames come in.
func (h *host) ownLink(device string) link.ID {
	h.t.Helper()
	l, err := link.LoadPinnedLink(filepath.Join(h.dir, "run", "bpf", h.name, "links",
		fmt.Sprint(indexOf(h.t, h.ns, device))), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	defer l.Close()
	info, err := l.Info()
	if err != nil {
		h.t.Fatal(err)
	}
	return info.ID
}

func linkID(t *testing.T, l link.Link) link.ID {
	t.Helper()
	info, err := l.Info()
	if err != nil {
		t.Fatal(err)
	}
	return info.ID
}

// block blocks a port and gives what the answer says in both forms.
func (h *host) block(port string) (out api.Applied, warnings string) {
	h.t.Helper()
	text, warnings, status := h.heddle("port", "block", port, "-o", "json")
	if status != 0 {
		h.t.Fatalf("status %d: %s", status, warnings)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		h.t.Fatal(err)
	}
	return out, warnings
}

// A program of somebody else at the head of a device's chain sends a blocked guest's frames on. The switch cannot
// prevent that, and says so wherever somebody could rely on it.
func TestAForeignProgramBeforeOursIsToldEverywhere(t *testing.T) {
	h, file, a, b := twoVMs(t)
	if out, warnings := h.block("a"); out.RunsBefore != nil || warnings != "" {
		t.Errorf("with nothing before the switch: %+v, %s", out, warnings)
	}
	h.must("port", "unblock", "a")

	there, back := h.thief("pa", "pb"), h.thief("pb", "pa")
	id := linkID(t, there)
	out, warnings := h.block("a")
	if !pings(a, "192.0.2.11") {
		t.Fatal("the frames of a blocked port do not pass: this test is void")
	}
	what := fmt.Sprintf("program heddle_ingress (id %d, link %d) runs before the switch on device pa (ingress)",
		out.RunsBefore[0].Program, id)
	if len(out.RunsBefore) != 1 || out.RunsBefore[0].Link != uint32(id) || out.RunsBefore[0].Port != "a" ||
		!strings.Contains(warnings, what) {
		t.Errorf("the answer to port block: %+v\n%s", out, warnings)
	}
	if p := h.port("a"); p.State != api.Blocked || len(p.RunsBefore) != 1 || !strings.Contains(p.Reason, what) {
		t.Errorf("port a: %+v", p)
	}
	if list := h.must("port", "list"); !strings.Contains(list, "warning: port lab/a: "+what) {
		t.Errorf("port list:\n%s", list)
	}
	if !strings.Contains(h.log.String(), what) ||
		strings.Count(h.must("events", "--no-follow", "--kind", string(event.Program)), what) != 1 {
		t.Errorf("events:\n%s", h.must("events", "--no-follow"))
	}
	if found, status := h.examine(file); status != 1 || !hasFinding(found, "other programs", doctor.Wrong, what) {
		t.Errorf("doctor: status %d, %+v", status, found)
	}
	if advice, _, status := h.heddle("advise"); status != 1 ||
		!strings.Contains(advice, "program-before: port a of switch lab") {
		t.Errorf("advise: status %d\n%s", status, advice)
	}

	for _, l := range []link.Link{there, back} {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if out, warnings := h.block("a"); out.RunsBefore != nil || warnings != "" {
		t.Errorf("when they are gone: %+v, %s", out, warnings)
	}
	if reaches(a, "192.0.2.11") || reaches(b, "192.0.2.10") {
		t.Error("a blocked port passes traffic")
	}
	if p := h.port("a"); p.Reason != "" || p.RunsBefore != nil {
		t.Errorf("port a: %+v", p)
	}
}

// Somebody, such as a second agent on the same pinned objects, exchanges the program behind the switch's own
// attachment: its id stays, and no frame comes to the switch. The agent puts its program back and says so.
func TestS116_AnExchangedProgramIsPutBack(t *testing.T) {
	h, _, a, b := twoVMs(t)
	if !pings(a, "192.0.2.11") {
		t.Fatal("the guests do not reach each other")
	}
	drop, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "drop", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	defer drop.Close()
	own, err := link.LoadPinnedLink(filepath.Join(h.dir, "run", "bpf", h.name, "links",
		fmt.Sprint(indexOf(t, h.ns, "pa"))), nil)
	if err == nil {
		err = errors.Join(own.Update(drop), own.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if reaches(a, "192.0.2.11") {
		t.Fatal("frames pass: this test is void")
	}
	h.must("port", "block", "a") // at a command, and each minute
	h.must("port", "unblock", "a")
	const what = "exchanged the switch's program on device pa for program"
	if !pings(a, "192.0.2.11") || !pings(b, "192.0.2.10") ||
		strings.Count(h.must("events", "--no-follow", "--kind", string(event.Program)), what) != 1 {
		t.Errorf("events:\n%s", h.must("events", "--no-follow"))
	}
}

// An XDP program runs before every program of tcx.
func TestAnXDPProgramIsTold(t *testing.T) {
	h, file, _, _ := twoVMs(t)
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "pass", Type: ebpf.XDP, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	set := func(fd int) {
		t.Helper()
		err := h.ns.Do(func() error {
			d, err := netlink.LinkByName("pa")
			if err != nil {
				return err
			}
			return netlink.LinkSetXdpFdWithFlags(d, fd, unix.XDP_FLAGS_SKB_MODE)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	set(p.FD())
	h.await("the XDP program is seen", func() bool {
		before := h.port("a").RunsBefore
		return len(before) == 1 && before[0].Hook == api.HookXDP && before[0].Program != 0
	})
	if found, status := h.examine(file); status != 1 || !hasFinding(found, "other programs", doctor.Wrong,
		"XDP program") {
		t.Errorf("doctor: status %d, %+v", status, found)
	}
	set(-1)
	h.await("it is gone", func() bool { return h.port("a").RunsBefore == nil })
}

// Whoever was on the device earlier runs behind the switch, and so cannot take what the switch would refuse.
func TestTheSwitchComesBeforeWhatWasOnTheDevice(t *testing.T) {
	h := newHost(t)
	a, b := h.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24"), h.guest("pb", "02:00:00:00:00:0b", "192.0.2.11/24")
	h.thief("pa", "pb")
	h.thief("pb", "pa")
	h.start("--config", h.file("heddle.yaml", twoGuests))
	h.awaitPort("a", api.Up)
	h.awaitPort("b", api.Up)
	if p := h.port("a"); p.Reason != "" || p.RunsBefore != nil {
		t.Errorf("port a: %+v", p)
	}
	if got := h.chain("pa"); len(got) != 2 || got[0] != h.ownLink("pa") {
		t.Errorf("the chain is %v, our link %d", got, h.ownLink("pa"))
	}
	if !pings(a, "192.0.2.11") {
		t.Error("no traffic")
	}
	h.must("port", "block", "a")
	if reaches(a, "192.0.2.11") || reaches(b, "192.0.2.10") {
		t.Error("a blocked port passes traffic")
	}
}

// A device that somebody took the program off has none that looks at its frames; the next command that promises
// something finds that.
func TestADetachedProgramIsAttachedAgain(t *testing.T) {
	h, file, a, _ := twoVMs(t)
	l, err := link.NewFromID(h.ownLink("pa"))
	if err == nil {
		err = l.Detach()
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := programs(t, h.ns, "pa"); n != 0 {
		t.Fatalf("%d programs: this test is void", n)
	}
	if found, status := h.examine(file); status != 1 || !hasFinding(found, "other programs", doctor.Wrong,
		"the switch's program is not on device pa") {
		t.Errorf("doctor: status %d, %+v", status, found)
	}
	h.must("port", "block", "a")
	if n := programs(t, h.ns, "pa"); n != 1 {
		t.Errorf("%d programs after port block", n)
	}
	if reaches(a, "192.0.2.11") {
		t.Error("a blocked port passes traffic")
	}
	h.must("port", "unblock", "a")
	h.inService("a", "pa", a, "192.0.2.11")
}

// The second agent on the same devices gets only what the first passes on. The first is not disturbed; the second says
// whose the device is.
func TestTwoAgentsOnOneDevice(t *testing.T) {
	h, file, a, b := twoVMs(t)
	second := &host{t: t, ns: h.ns, dir: h.dir, name: h.name + "b", log: &logBuffer{}, made: h.made}
	t.Cleanup(func() {
		if second.agent != nil {
			second.kill(syscall.SIGKILL)
		}
		second.must("down", "--purge")
	})
	second.start("--config", second.file("second.yaml", twoGuests))
	what := "of agent " + h.name
	second.await("the second agent says whose the device is", func() bool {
		return strings.Contains(second.port("a").Reason, what)
	})
	out, warnings := second.block("a")
	if len(out.RunsBefore) != 1 || out.RunsBefore[0].Agent != h.name || !strings.Contains(warnings, what) {
		t.Errorf("port block of the second agent: %+v\n%s", out, warnings)
	}
	if found, status := second.examine(file); status != 1 || !hasFinding(found, "other programs", doctor.Wrong, what) {
		t.Errorf("doctor for the second agent: status %d, %+v", status, found)
	}
	if !pings(a, "192.0.2.11") {
		t.Error("the first agent's switch is disturbed")
	}
	if p := h.port("a"); p.Reason != "" {
		t.Errorf("the first agent's port: %+v", p)
	}
	if found, _ := h.examine(file); !hasFinding(found, "other programs", doctor.Wrong, "of agent "+second.name) {
		t.Errorf("doctor for the first agent: %+v", found)
	}
	h.must("port", "block", "a")
	if reaches(b, "192.0.2.10") {
		t.Error("a port that its first agent blocked passes traffic")
	}
	h.must("port", "unblock", "a")
}

// A private mount namespace may keep the pins of an agent alive that lost them. Its former links count as somebody
// else's: the ones made anew come before them.
func TestFormerLinksInAPrivateMountNamespace(t *testing.T) {
	testkit.Long(t, "TestTheSwitchComesBeforeWhatWasOnTheDevice has programs of others")
	h, file, a, b := twoVMs(t)
	former := h.ownLink("pa")
	holder := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", "echo; exec sleep 300")
	ready, err := holder.StdoutPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
		h.await("the former links go with the namespace", func() bool { return len(h.chain("pa")) < 2 })
	})
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Unmount(filepath.Join(h.dir, "run", "bpf"), unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	h.kill(syscall.SIGKILL)
	h.start("--config", file)
	h.awaitPort("a", api.Up)
	h.await("both links are there", func() bool { return len(h.chain("pa")) == 2 })
	if got := h.chain("pa"); got[0] != h.ownLink("pa") || got[1] != former {
		t.Fatalf("the chain is %v; the link is %d, the former %d", got, h.ownLink("pa"), former)
	}
	if out, warnings := h.block("a"); out.RunsBefore != nil {
		t.Errorf("%+v\n%s", out, warnings)
	}
	if reaches(a, "192.0.2.11") || reaches(b, "192.0.2.10") {
		t.Error("a blocked port passes traffic")
	}
	if found, status := h.examine(file); status != 1 || !hasFinding(found, "other programs", doctor.Wrong,
		fmt.Sprintf("link %d) is on device pa, too", former)) {
		t.Errorf("doctor: status %d, %+v", status, found)
	}
}
