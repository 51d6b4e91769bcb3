package qemu_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/netns"
	"heddle/internal/qemu"
	"heddle/internal/qemu/image"
	"heddle/internal/testkit"
)

// bridged is a namespace with a Linux bridge, which nobody here wrote, and a veth from it to a second namespace.
func bridged(t *testing.T, addrs ...string) (sw, peer *netns.NS) {
	t.Helper()
	sw, peer = testkit.NS(t, "sw"), testkit.NS(t, "vm")
	h, err := peer.Handle()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	err = sw.Do(func() error {
		br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "vm"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(h))}
		return errors.Join(netlink.LinkAdd(br), netlink.LinkAdd(veth), netlink.LinkSetMaster(veth, br),
			qemu.CreateTap(nil, "tap0", 1, 0), joinBridge("tap0", br), netlink.LinkSetUp(veth), netlink.LinkSetUp(br))
	})
	if err != nil {
		t.Fatal(err)
	}
	addAddrs(t, peer, addrs...)
	return sw, peer
}

func joinBridge(name string, br *netlink.Bridge) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetMaster(link, br)
}

// addAddrs gives eth0 of a namespace its addresses and brings it up.
func addAddrs(t *testing.T, ns *netns.NS, addrs ...string) {
	t.Helper()
	err := ns.Do(func() error {
		eth0, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		for _, a := range addrs {
			addr, err := netlink.ParseAddr(a)
			if err != nil {
				return err
			}
			if addr.IP.To4() == nil {
				addr.Flags = syscall.IFA_F_NODAD
			}
			if err := netlink.AddrAdd(eth0, addr); err != nil {
				return err
			}
		}
		return netlink.LinkSetUp(eth0)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// statistics reads the counters of a device.
func statistics(t *testing.T, ns *netns.NS, device string) netlink.LinkStatistics64 {
	t.Helper()
	var s netlink.LinkStatistics64
	err := ns.Do(func() error {
		link, err := netlink.LinkByName(device)
		if err == nil {
			s = netlink.LinkStatistics64(*link.Attrs().Statistics)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestGuest_ExchangesThroughBridge: every card carries TCP and UDP both ways with right checksums, IPv4 and IPv6, and with
// virtio-net large segments stay whole on the tap.
func TestGuest_ExchangesThroughBridge(t *testing.T) {
	needGuests(t, qemu.VirtioNet, qemu.E1000)
	program := buildExchange(t)
	for _, card := range []qemu.NIC{qemu.VirtioNet, qemu.E1000, qemu.E1000E} {
		t.Run(string(card), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 55*time.Second)
			defer cancel()
			sw, peer := bridged(t, "192.0.2.2/24", "2001:db8::2/64")
			g := start(t, ctx, qemu.Options{
				Name: "bridged-" + string(card), NetNS: sw, Tap: "tap0", NIC: card,
				Addrs: []string{"192.0.2.1/24", "2001:db8::1/64"}, Files: map[string]string{exchangePath: program},
			})
			v := vm{peer, program}
			if err := g.Ready(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := v.run(ctx, "ping -c 3 -i 0.2 -W 5 192.0.2.1"); err != nil {
				t.Error(err)
			}
			v.serve(t, ctx)
			g.serve(t, ctx)
			before := statistics(t, sw, "tap0")
			if _, err := v.run(ctx, exchangePath+" tcp 192.0.2.1:"+port+" 4000000"); err != nil {
				t.Fatal(err)
			}
			after := statistics(t, sw, "tap0")
			toGuest := float64(after.TxBytes-before.TxBytes) / float64(after.TxPackets-before.TxPackets)
			fromGuest := float64(after.RxBytes-before.RxBytes) / float64(after.RxPackets-before.RxPackets)
			t.Logf("bytes per frame on the tap: %.0f to the guest, %.0f from it", toGuest, fromGuest)
			if card == qemu.VirtioNet && (toGuest < 2000 || fromGuest < 2000) {
				t.Error("segmentation offload was not in use")
			}
			exchange(t, ctx, g, "192.0.2.1", v, "192.0.2.2")
			exchange(t, ctx, g, "2001:db8::1", v, "2001:db8::2")
		})
	}
}

// TestGuest_Commands: results, exit codes, several at once, and killing with the context.
func TestGuest_Commands(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	ns := testkit.NS(t, "cmd")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("from the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := start(t, ctx, qemu.Options{
		Name: "commands", NetNS: ns, Tap: "tap0", VLAN: 7, MTU: 1400, Queues: 2, Addrs: []string{"192.0.2.1/24"},
		Files: map[string]string{"/etc/deep/file": file},
	})
	for _, c := range []struct {
		command, stdout, stderr string
		code                    int
	}{
		{"echo out; echo err >&2; exit 3", "out\n", "err\n", 3},
		{"cat /etc/deep/file", "from the host", "", 0},
		{"kill -TERM $$", "", "", 128 + int(syscall.SIGTERM)},
		{"head -c 100000 /dev/zero | tr '\\0' x", strings.Repeat("x", 100000), "", 0},
		{"printf '\\303\\244 \"$HOME\" \\n'", "ä \"$HOME\" \n", "", 0},
		{"cat /sys/class/net/eth0/mtu; hostname; nproc; ls -d /sys/class/net/eth0/queues/rx-* | wc -l", "1400\ncommands\n2\n2\n", "", 0},
		{"ip -o -4 addr show dev eth0.7 | grep -o 192.0.2.1/24", "192.0.2.1/24\n", "", 0},
	} {
		r, err := g.Run(ctx, c.command)
		if err != nil || r.Stdout != c.stdout || r.Stderr != c.stderr || r.ExitCode != c.code {
			t.Errorf("%q gave %.200q %q %d %v", c.command, r.Stdout, r.Stderr, r.ExitCode, err)
		}
	}
	// Two commands that only end when both run at once.
	meet := func(own, other string) error {
		_, err := g.run(ctx, "touch /tmp/"+own+"; until [ -e /tmp/"+other+" ]; do usleep 1000; done")
		return err
	}
	first := make(chan error, 1)
	go func() { first <- meet("a", "b") }()
	if err := errors.Join(meet("b", "a"), <-first); err != nil {
		t.Error(err)
	}
	short, end := context.WithTimeout(ctx, 200*time.Millisecond)
	defer end()
	if _, err := g.Run(short, "echo $$ >/tmp/victim; sleep 1000; true"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a command that sleeps ended with %v", err)
	}
	if out, err := g.run(ctx, "while ps | grep -q '[s]leep 1000'; do usleep 10000; done; echo gone"); err != nil || out != "gone\n" {
		t.Errorf("the command was not killed: %q %v", out, err)
	}
	if _, err := g.Run(ctx, strings.Repeat("x", 40000)); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a command that is too long gave %v", err)
	}
	// A kernel that panics ends the guest, and its last words are in the error.
	if _, err := g.Run(ctx, "echo c >/proc/sysrq-trigger"); err == nil || !strings.Contains(err.Error(), "Kernel panic") {
		t.Errorf("a panic gave: %v", err)
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// TestGuest_LeavesNothing: what Start made goes with the guest, whichever way it ends.
func TestGuest_LeavesNothing(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	for name, end := range map[string]func(*qemu.Guest, context.CancelFunc) error{
		"stop":    func(g *qemu.Guest, _ context.CancelFunc) error { return errors.Join(g.Stop(), g.Stop()) },
		"context": func(g *qemu.Guest, cancel context.CancelFunc) error { cancel(); return g.Wait() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			// A TMPDIR of its own, to see what stays in it.
			tmp, err := os.MkdirTemp("/tmp", "heddle-qt-")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(tmp)
			t.Setenv("TMPDIR", tmp)
			ns := testkit.NS(t, "left")
			g := start(t, ctx, qemu.Options{Name: "left", NetNS: ns, Tap: "tap0", MTU: 9000})
			if out, err := ns.Output("ip", "-o", "link", "show", "tap0"); err != nil || !strings.Contains(string(out), "mtu 9000") {
				t.Errorf("the tap is not as asked for: %s %v", out, err)
			}
			if left, _ := os.ReadDir(tmp); len(left) != 1 {
				t.Errorf("expected one private directory, found %v", left)
			}
			if err := end(g.Guest, cancel); err != nil {
				t.Error(err)
			}
			if out, err := ns.Output("ip", "link", "show", "tap0"); err == nil {
				t.Errorf("the tap is still there: %s", out)
			}
			if left, _ := os.ReadDir(tmp); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
			if err := syscall.Kill(g.Pid(), 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("QEMU is still there: %v", err)
			}
		})
	}
}

// TestGuest_FailuresSayWhy: the error has what QEMU or the guest said, and nothing stays.
func TestGuest_FailuresSayWhy(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ns := testkit.NS(t, "fail")
	_, err := qemu.Start(ctx, qemu.Options{Name: "bad", NetNS: ns, Tap: "tap0", ExtraArgs: []string{"-nonsense"}})
	if err == nil || !strings.Contains(err.Error(), "-nonsense") {
		t.Errorf("a wrong argument gave: %v", err)
	}
	if out, err := ns.Output("ip", "link", "show", "tap0"); err == nil {
		t.Errorf("the tap is still there: %s", out)
	}
	_, err = qemu.Start(ctx, qemu.Options{Name: "bad", NetNS: ns, Tap: "lo"})
	if err == nil || !strings.Contains(err.Error(), "not a tap") {
		t.Errorf("a device that is no tap gave: %v", err)
	}
	_, err = qemu.Start(ctx, qemu.Options{Name: "bad", NetNS: ns, Tap: "tap0", Files: map[string]string{"/x": "/nowhere/at/all"}})
	if err == nil || !strings.Contains(err.Error(), "/nowhere/at/all") {
		t.Errorf("a missing file gave: %v", err)
	}
	g := start(t, ctx, qemu.Options{Name: "bad", NetNS: ns, Tap: "tap0", NIC: qemu.E1000, Image: cloudImage(t)})
	if err := g.Ready(ctx); err == nil || !strings.Contains(err.Error(), "the image has no module e1000") {
		t.Errorf("an image without the driver gave: %v", err)
	}
}

// cloudImage is the image without e1000.
func cloudImage(t *testing.T) *image.Image {
	t.Helper()
	img, err := image.Build(t.Context(), image.Options{Flavour: image.Cloud})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// TestGuest_DiesWithItsParent: QEMU does not outlive a parent that was killed.
func TestGuest_DiesWithItsParent(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	ns := testkit.NS(t, "orphan")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"="+ns.Name, "TMPDIR="+t.TempDir())
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	pid, convErr := strconv.Atoi(strings.TrimSpace(line))
	if err := errors.Join(err, convErr); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("QEMU does not run: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for deadline := time.Now().Add(5 * time.Second); alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("QEMU outlived its parent")
		}
	}
}

// alive tells whether the process runs: one that ended and was not yet waited for by the first process does not.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}
