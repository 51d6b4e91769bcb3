package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket/pcapgo"
	"golang.org/x/sys/unix"

	"heddle/internal/netns"
	"heddle/internal/testkit"
)

const capturedHost = `switches:
  - name: s
    portGroups:
      - {name: plain}
      - {name: trunk, vlan: {trunk: ["0", "10-20"]}}
      - {name: ten, vlan: {access: 10}}
ports:
  - {name: vm1/eth0, switch: s, portGroup: plain, device: cap1, mac: "02:00:00:00:0c:01"}
  - {name: vm2/eth0, switch: s, portGroup: plain, device: cap2, mac: "02:00:00:00:0c:02"}
  - {name: vm3/eth0, switch: s, portGroup: trunk, device: cap3, mac: "02:00:00:00:0c:03"}
  - {name: vm4/eth0, switch: s, portGroup: ten, device: cap4, mac: "02:00:00:00:0c:04"}
  - {name: vmk0, switch: s, portGroup: plain, role: host, mac: "02:00:00:00:0c:05", addresses: [10.8.0.5/24]}
`

// captureHost is a host with four guests, and an agent.
func captureHost(t *testing.T) (*host, map[string]*netns.NS) {
	t.Helper()
	h := newHost(t)
	silence(t, h.ns)
	guests := map[string]*netns.NS{}
	for i := range 4 {
		name := fmt.Sprintf("vm%d/eth0", i+1)
		guests[name] = h.guest(fmt.Sprintf("cap%d", i+1), fmt.Sprintf("02:00:00:00:0c:%02x", i+1), fmt.Sprintf("10.8.0.%d/24", i+1))
		silence(t, guests[name])
		h.ip(fmt.Sprintf("link set cap%d up", i+1))
	}
	h.start("--config", h.file("heddle.yaml", capturedHost))
	for name := range guests {
		h.awaitPort(name, "up")
	}
	h.awaitPort("vmk0", "up")
	return h, guests
}

// silence turns IPv6 off: nothing shall be sent but what the test sends.
func silence(t *testing.T, ns *netns.NS) {
	t.Helper()
	err := ns.Do(func() error {
		for _, of := range []string{"all", "default"} {
			if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+of+"/disable_ipv6", []byte("1"), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// recording is a program that records packets into a file until it is ended.
type recording struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  *bytes.Buffer
	file string
}

// record starts a program and waits for the word by which it says that it records.
func record(t *testing.T, ns *netns.NS, cmd *exec.Cmd, file, ready string) *recording {
	t.Helper()
	r := &recording{t: t, cmd: cmd, out: &bytes.Buffer{}, file: file}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	in := bufio.NewReader(errs)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("%s ended before it recorded: %s%v", cmd.Path, line, err)
		}
		if strings.Contains(line, ready) {
			break
		}
	}
	go func() { _, _ = io.Copy(r.out, in) }()
	return r
}

// end ends the recording in order and gives what the program says at its end.
func (r *recording) end() string {
	r.t.Helper()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		r.t.Fatal(err)
	}
	state, err := r.cmd.Process.Wait()
	if err != nil || !state.Success() {
		r.t.Fatalf("%s: %v, %v: %s", r.cmd.Path, state, err, r.out)
	}
	return r.out.String()
}

func (h *host) recordCapture(args ...string) *recording {
	h.t.Helper()
	file := filepath.Join(h.dir, fmt.Sprintf("capture%d.pcapng", time.Now().UnixNano()))
	return record(h.t, h.ns, h.command(append([]string{"capture", "-w", file}, args...)...), file, "capturing")
}

// tcpdump records what passes a device.
func tcpdump(t *testing.T, ns *netns.NS, device string) *recording {
	t.Helper()
	file := filepath.Join(t.TempDir(), "guest.pcap")
	return record(t, ns, exec.Command("tcpdump", "-i", device, "-w", file, "-U", "--immediate-mode", "-B", "32768", "-s", "0", "-Z", "root"), file, "listening on")
}

// packets are the frames of a classic capture file, in order, as text.
func (r *recording) packets() (frames []string) {
	r.t.Helper()
	f, err := os.Open(r.file)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	p, err := pcapgo.NewReader(f)
	if err != nil {
		r.t.Fatal(err)
	}
	for {
		data, _, err := p.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return frames
		}
		if err != nil {
			r.t.Fatal(err)
		}
		frames = append(frames, fmt.Sprintf("%x", data))
	}
}

// byInterface are the frames of a pcapng file by the name of their interface.
func (r *recording) byInterface() map[string][]string {
	r.t.Helper()
	f, err := os.Open(r.file)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	p, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		r.t.Fatal(err)
	}
	frames := map[string][]string{}
	for {
		data, info, err := p.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return frames
		}
		if err != nil {
			r.t.Fatal(err)
		}
		i, err := p.Interface(info.InterfaceIndex)
		if err != nil {
			r.t.Fatal(err)
		}
		frames[i.Name] = append(frames[i.Name], fmt.Sprintf("%x", data))
	}
}

// sendRaw sends a frame as it is.
func sendRaw(t *testing.T, ns *netns.NS, device string, frame string) {
	t.Helper()
	var b []byte
	if _, err := fmt.Sscanf(strings.ReplaceAll(frame, " ", ""), "%x", &b); err != nil {
		t.Fatal(err)
	}
	b = append(b, make([]byte, max(60-len(b), 0))...)
	err := ns.Do(func() error {
		i, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, b, 0, &unix.SockaddrLinklayer{Ifindex: i.Index})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// transfer sends so many bytes by TCP.
func transfer(t *testing.T, from, to *netns.NS, address string, size int) {
	t.Helper()
	var l net.Listener
	err := to.Do(func() (err error) { l, err = net.Listen("tcp", address); return err })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan int64, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- 0
			return
		}
		n, _ := io.Copy(io.Discard, c)
		_ = c.Close()
		got <- n
	}()
	err = from.Do(func() error {
		c, err := net.DialTimeout("tcp", l.Addr().String(), 5*time.Second)
		if err != nil {
			return err
		}
		_, err = c.Write(bytes.Repeat([]byte("heddle "), size/7))
		return errors.Join(err, c.Close())
	})
	if n := <-got; err != nil || n != int64(size/7*7) {
		t.Fatalf("%d bytes arrived of %d: %v", n, size, err)
	}
}

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

// TestCaptureIsWhatTcpdumpInTheGuestsSees is the promise of "heddle capture": with --stage admit,deliver a port shows what
// tcpdump shows its owner, frame by frame.
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
	// What is sent last comes last everywhere, by the same way.
	for name, ns := range guests {
		sendRaw(t, ns, "eth0", fmt.Sprintf("ffffffffffff 02000000 0c0%c 88b5 ffff", name[2]))
	}
	h.await("the last frames are recorded", func() bool { return len(owners["vmk0"].packets()) > 0 && settled(owners) })
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

// settled says whether the recordings have not grown for a while.
func settled(all map[string]*recording) bool {
	size := func() (n int64) {
		for _, r := range all {
			if s, err := os.Stat(r.file); err == nil {
				n += s.Size()
			}
		}
		return n
	}
	before := size()
	time.Sleep(300 * time.Millisecond)
	return size() == before
}

// checkDissection has tshark read the file, an independent reader of its format: interfaces, comments, directions.
func checkDissection(t *testing.T, drops *recording) {
	t.Helper()
	out, err := exec.Command("tshark", "-r", drops.file, "-T", "fields", "-E", "separator=|", "-e", "frame.interface_name", "-e", "frame.comment", "-e", "frame.packet_flags_direction").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{
		"vm1/eth0|port vm1/eth0, in, drop forged-transmit, segment untagged|0x00000001",
		"vm1/eth0|port vm1/eth0, in, drop guest-tagged|0x00000001",
		"vm1/eth0|port vm1/eth0, in, drop guest-bpdu",
		"vm1/eth0|port vm1/eth0, in, drop source-group",
		"vm1/eth0|port vm1/eth0, in, drop source-zero",
		"vm1/eth0|port vm1/eth0, in, drop own-destination",
		"vm3/eth0|port vm3/eth0, in, drop vlan-not-allowed, segment 99",
		"vm4/eth0|port vm4/eth0, in, drop unknown-unicast, segment 10",
	} {
		if strings.Count(string(out), want) != 1 {
			t.Errorf("not once in what tshark reads: %q\n%s", want, out)
		}
	}
}

// attached are the programs on the devices of the guests.
func attached(t *testing.T, h *host) (all []*ebpf.ProgramInfo) {
	t.Helper()
	err := h.ns.Do(func() error {
		for i := range 4 {
			dev, err := net.InterfaceByName(fmt.Sprintf("cap%d", i+1))
			if err != nil {
				return err
			}
			there, err := link.QueryPrograms(link.QueryOptions{Target: dev.Index, Attach: ebpf.AttachTCXIngress})
			if err != nil {
				return err
			}
			for _, p := range there.Programs {
				all = append(all, programInfo(t, p.ID))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// programInfo describes a program; nil when it has just gone.
func programInfo(t *testing.T, id ebpf.ProgramID) *ebpf.ProgramInfo {
	t.Helper()
	p, err := ebpf.NewProgramFromID(id)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// programNames are the names of the programs on the devices.
func programNames(t *testing.T, h *host) (names []string) {
	t.Helper()
	for _, info := range attached(t, h) {
		if info != nil {
			names = append(names, info.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// standIns counts the programs in the kernel that capture and work on this host's tables.
func standIns(t *testing.T, h *host) (n int) {
	t.Helper()
	tables, _ := attached(t, h)[0].MapIDs()
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		info := programInfo(t, id)
		if info == nil || !strings.HasPrefix(info.Name, "heddle_") {
			continue
		}
		ids, _ := info.MapIDs()
		if slices.ContainsFunc(ids, func(id ebpf.MapID) bool { return slices.Contains(tables, id) }) && slices.ContainsFunc(ids, isScratch) {
			n++
		}
	}
	return n
}

// isScratch says whether the map is one that only capturing programs have.
func isScratch(id ebpf.MapID) bool {
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return false
	}
	defer m.Close()
	info, err := m.Info()
	return err == nil && info.Name == "capture_scratch"
}

func TestCaptureEndsWithItsClientAndWithTheAgent(t *testing.T) {
	testkit.Tool(t, "tcpdump")
	h, guests := captureHost(t)
	const live, asking = "heddle_ingress", "heddle_ingress_or"
	if got := programNames(t, h); !slices.Equal(got, []string{live}) {
		t.Fatalf("programs before: %v", got)
	}
	r := h.recordCapture("vm1/eth0")
	if got := programNames(t, h); !slices.Equal(got, []string{asking}) {
		t.Fatalf("programs while a capture runs: %v", got)
	}
	stream := startNumbered(t, guests["vm1/eth0"], guests["vm2/eth0"], "10.8.0.2")
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.await("the live program is back after the client's death", func() bool { return slices.Equal(programNames(t, h), []string{live}) })
	h.recordCapture("vm2/eth0", "tcp", "port", "80")
	before := standIns(t, h)
	if before == 0 {
		t.Fatal("no program stands in while a capture runs")
	}
	h.kill(syscall.SIGKILL)
	h.await("no program stands in after the agent's death", func() bool { return standIns(t, h) == 0 })
	h.start()
	h.await("the live program is back", func() bool { return slices.Equal(programNames(t, h), []string{live}) })
	stream.finish()
}
