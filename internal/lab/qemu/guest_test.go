package qemu_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/qemu"
	"heddle/internal/test/testkit"
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
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "vm"}, PeerName: "eth0",
			PeerNamespace: netlink.NsFd(int(h))}
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
	addAddrsTo(t, ns, "eth0", addrs...)
}

// addAddrsTo is addAddrs for another device than eth0.
func addAddrsTo(t *testing.T, ns *netns.NS, device string, addrs ...string) {
	t.Helper()
	err := ns.Do(func() error {
		link, err := netlink.LinkByName(device)
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
			if err := netlink.AddrAdd(link, addr); err != nil {
				return err
			}
		}
		return netlink.LinkSetUp(link)
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

// TestGuest_ExchangesThroughBridge: every card carries TCP and UDP both ways with right checksums, IPv4 and IPv6, and
// with virtio-net large segments stay whole on the tap.
func TestGuest_ExchangesThroughBridge(t *testing.T) {
	needGuests(t, qemu.VirtioNet, qemu.E1000)
	program := buildExchange(t)
	for _, card := range []qemu.NIC{qemu.VirtioNet, qemu.E1000, qemu.E1000E} {
		t.Run(string(card), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
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
	t.Parallel()
	needGuests(t, qemu.VirtioNet)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
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
		{"cat /sys/class/net/eth0/mtu; hostname; nproc; ls -d /sys/class/net/eth0/queues/rx-* | wc -l",
			"1400\ncommands\n2\n2\n", "", 0},
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
	if out, err := g.run(ctx, "while ps | grep -q '[s]leep 1000'; do usleep 10000; done; echo gone"); err != nil ||
		out != "gone\n" {
		t.Errorf("the command was not killed: %q %v", out, err)
	}
	if _, err := g.Run(ctx, strings.Repeat("x", 40000)); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a command that is too long gave %v", err)
	}
	// A kernel that panics ends the guest, and its last words are in the error.
	if _, err := g.Run(ctx, "echo c >/proc/sysrq-trigger"); err == nil ||
		!strings.Contains(err.Error(), "Kernel panic") {
		t.Errorf("a panic gave: %v", err)
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
