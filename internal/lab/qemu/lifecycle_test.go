package qemu_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
	"heddle/internal/test/testkit"
)

// TestGuest_LeavesNothing: what Start made is removed with the guest, however that ends.
func TestGuest_LeavesNothing(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	for name, end := range map[string]func(*qemu.Guest, context.CancelFunc) error{
		"stop":    func(g *qemu.Guest, _ context.CancelFunc) error { return errors.Join(g.Stop(), g.Stop()) },
		"context": func(g *qemu.Guest, cancel context.CancelFunc) error { cancel(); return g.Wait() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
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
			if out, err := ns.Output("ip", "-o", "link", "show", "tap0"); err != nil ||
				!strings.Contains(string(out), "mtu 9000") {
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

// TestGuest_FailuresSayWhy: the error contains what QEMU or the guest said, and nothing is left.
func TestGuest_FailuresSayWhy(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
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
	_, err = qemu.Start(ctx, qemu.Options{Name: "bad", NetNS: ns, Tap: "tap0",
		Files: map[string]string{"/x": "/nowhere/at/all"}})
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
	for deadline := time.Now().Add(time.Minute); alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("QEMU outlived its parent")
		}
	}
}

// alive reports whether the process runs: one that ended and was not yet waited for by the first process does not.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}
