package qemu_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
	"heddle/internal/test/testkit"
)

const (
	port         = "5001"
	exchangePath = "/bin/exchange"
	// What goes each way in each exchange. A datagram waits for the answer to the one before, so there are fewer of
	// them.
	streamBytes   = 1 << 20
	datagramBytes = 256 << 10
)

// machine is an end of an exchange: a guest, or a namespace.
type machine interface {
	// run runs a shell command and gives its standard output; a failing command is an error.
	run(ctx context.Context, command string) (string, error)
	// serve starts the exchange server, which goes with the test.
	serve(t *testing.T, ctx context.Context)
}

func (g guest) run(ctx context.Context, command string) (string, error) {
	r, err := g.Run(ctx, command)
	if err == nil && r.ExitCode != 0 {
		err = fmt.Errorf("%s in guest %s: exit %d: %s", command, g.Name(), r.ExitCode, r.Stderr)
	}
	return r.Stdout, err
}

func (g guest) serve(t *testing.T, ctx context.Context) {
	if _, err := g.run(ctx, exchangePath+" serve "+port+" >/dev/null 2>&1 &"); err != nil {
		t.Fatal(err)
	}
}

// vm is a namespace with the exchange program somewhere in this machine's file system.
type vm struct {
	ns       *netns.NS
	exchange string
}

func (v vm) run(ctx context.Context, command string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(command, exchangePath, v.exchange))
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := v.ns.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("%s in namespace %s: %w: %s", command, v.ns.Name, err, errs.String())
	}
	return out.String(), nil
}

func (v vm) serve(t *testing.T, _ context.Context) {
	cmd := exec.Command(v.exchange, "serve", port)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := v.ns.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// buildExchange builds the exchange program so that it runs in a guest, without a C library.
func buildExchange(t *testing.T) string {
	t.Helper()
	testkit.Tool(t, "go")
	out := filepath.Join(t.TempDir(), "exchange")
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", out, "./testdata/exchange")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the exchange program: %v: %s", err, text)
	}
	return out
}

// needGuests skips the test where guests cannot run: no root, no QEMU, or no way to get the image with the card's
// driver.
func needGuests(t *testing.T, cards ...qemu.NIC) {
	t.Helper()
	testkit.Root(t)
	testkit.Tool(t, "qemu-system-x86_64")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for _, card := range cards {
		if _, err := image.Build(ctx, image.Options{Flavour: card.Flavour(), Log: t.Logf}); err != nil {
			testkit.Missing(t, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	testkit.Weigh(t, 2)
}

// start starts a guest that ends with the test.
func start(t *testing.T, ctx context.Context, o qemu.Options) guest {
	t.Helper()
	g, err := qemu.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	out := guest{g, &atomic.Bool{}}
	out.watch(ctx)
	t.Cleanup(func() {
		ended := false
		select {
		case <-g.Done():
			ended = true
		default:
		}
		if err := out.Stop(); err != nil && !errors.Is(context.Cause(ctx), errGuestEnded) {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("guest %s had ended by itself: %v%s", g.Name(), ended, g.Said())
		}
	})
	return out
}

// exchange sends data between two machines in both directions over TCP and UDP, opened from either side, and checks
// that neither end counts a wrong checksum. The addresses are of one family.
func exchange(t *testing.T, ctx context.Context, a machine, addrA string, b machine, addrB string) {
	t.Helper()
	for _, way := range []struct {
		from machine
		to   string
	}{{a, addrB}, {b, addrA}} {
		for proto, size := range map[string]int{"tcp": streamBytes, "udp": datagramBytes} {
			command := fmt.Sprintf("%s %s %s %d", exchangePath, proto, hostPort(way.to), size)
			out, err := way.from.run(ctx, command)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			t.Logf("to %s: %s", way.to, strings.TrimSpace(out))
			// A frame may be late on a busy machine, but it must not work only because of repeats.
			if _, text, ok := strings.Cut(out, "repeated "); ok {
				if n, err := strconv.Atoi(strings.TrimSpace(text)); err != nil || n > datagramBytes/1400/20 {
					t.Errorf("%s: too many datagrams had to be repeated", strings.TrimSpace(out))
				}
			}
		}
	}
	for _, m := range []machine{a, b} {
		if n := checksumErrors(t, ctx, m); n != 0 {
			t.Errorf("%v counted %d packets with wrong checksums", m, n)
		}
	}
}

func hostPort(addr string) string {
	if strings.Contains(addr, ":") {
		return "[" + addr + "]:" + port
	}
	return addr + ":" + port
}

// checksumErrors adds up the kernel's counters of wrong checksums (names and values are on alternating lines in snmp,
// in pairs in snmp6).
func checksumErrors(t *testing.T, ctx context.Context, m machine) (sum int) {
	t.Helper()
	v4, err := m.run(ctx, "cat /proc/self/net/snmp")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(v4), "\n")
	seen := 0
	for i := 0; i+1 < len(lines); i += 2 {
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		for j, name := range names {
			if name == "InCsumErrors" {
				n, err := strconv.Atoi(values[j])
				if err != nil {
					t.Fatal(err)
				}
				sum += n
				seen++
			}
		}
	}
	if seen < 3 {
		t.Fatalf("found %d checksum counters, expected those of ICMP, TCP and UDP", seen)
	}
	v6, err := m.run(ctx, "awk '/InCsumErrors/ {n += $2} END {print n+0}' /proc/self/net/snmp6")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(v6))
	if err != nil {
		t.Fatal(err)
	}
	return sum + n
}

// childRole makes this test binary start a guest and hang, so that a test can kill it.
const childRole = "HEDDLE_QEMU_TEST_CHILD"

func TestMain(m *testing.M) {
	if ns := os.Getenv(childRole); ns != "" {
		hangWithGuest(ns)
		return
	}
	dir, err := os.MkdirTemp("", "heddle-qemu-test-")
	if err == nil {
		err = os.Setenv(programDir, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// hangWithGuest prints the process id of QEMU and waits for the end of standard input.
func hangWithGuest(name string) {
	ns, err := netns.Open(name)
	if err == nil {
		var g *qemu.Guest
		if g, err = qemu.Start(context.Background(), qemu.Options{Name: "orphan", Tap: "tap0", NetNS: ns}); err == nil {
			fmt.Println(g.Pid())
			_, err = io.Copy(io.Discard, os.Stdin)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
