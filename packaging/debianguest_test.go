package packaging

import (
	"archive/tar"
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/qemu"
	"heddle/internal/test/testkit"
)

// bootPatience is how long an emulated Debian may take to boot, and answerPatience how long one of its commands may
// take, beside whatever else the machine does.
const bootPatience, answerPatience = 6 * time.Minute, 5 * time.Minute

// debianGuest is a Debian of its own kernel under QEMU's emulation, with ifupdown's 192.0.2.10/24 on its card ens2, and
// the packages of heddle at hand in /root. outside has the other end of the card's cable.
type debianGuest struct {
	t       *testing.T
	image   string
	dir     string
	outside *netns.NS

	qemu  *exec.Cmd
	lines *bufio.Reader
	conn  net.Conn
	next  int
}

// newDebian is a guest with a disk of its own, which is off.
func newDebian(t *testing.T, packages string) *debianGuest {
	t.Helper()
	testkit.Tool(t, "qemu-system-x86_64")
	g := &debianGuest{t: t, image: debianImage(t), dir: t.TempDir(), outside: testkit.NS(t, "deb")}
	copySparse(t, filepath.Join(g.image, "disk.img"), filepath.Join(g.dir, "disk.img"))
	g.offer(packages)
	if err := qemu.CreateTap(g.outside, "cable", 1, 0); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"link", "set", "lo", "up"}, {"addr", "add", "192.0.2.1/24", "dev", "cable"}} {
		if out, err := g.outside.Output("ip", args...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	t.Cleanup(func() {
		g.cut()
		if t.Failed() {
			console, _ := os.ReadFile(filepath.Join(g.dir, "console"))
			t.Logf("the guest's console:\n%s", console)
		}
	})
	return g
}

// offer puts the packages into an archive that the guest has as its second disk.
func (g *debianGuest) offer(packages string) {
	g.t.Helper()
	f, err := os.Create(filepath.Join(g.dir, "packages.tar"))
	if err != nil {
		g.t.Fatal(err)
	}
	archive := tar.NewWriter(f)
	for _, version := range []string{oldVersion, newVersion} {
		text, err := os.ReadFile(deb(packages, version))
		if err != nil {
			g.t.Fatal(err)
		}
		err = archive.WriteHeader(&tar.Header{Name: filepath.Base(deb("", version)), Mode: 0o644,
			Size: int64(len(text))})
		if err == nil {
			_, err = archive.Write(text)
		}
		if err != nil {
			g.t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), f.Close()); err != nil {
		g.t.Fatal(err)
	}
}

// start switches the guest on, and waits until it has booted.
func (g *debianGuest) start() {
	g.t.Helper()
	path := filepath.Join(g.dir, "serve")
	_ = os.Remove(path)
	l, err := net.Listen("unix", path)
	if err != nil {
		g.t.Fatal(err)
	}
	defer l.Close()
	at := func(name string) string { return filepath.Join(g.dir, name) }
	g.qemu = exec.Command("qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-machine", "pc",
		"-no-reboot", "-accel", "tcg,thread=multi", "-m", "768", "-smp", "2",
		"-kernel", filepath.Join(g.image, "vmlinuz"), "-initrd", filepath.Join(g.image, "initrd.img"),
		"-append", "root=/dev/vda rw console=ttyS0 quiet no_timer_check "+
			"cryptomgr.notests mitigations=off panic=-1",
		// What QEMU has written stays when it is killed: nothing needs to reach this machine's disk.
		"-drive", "file="+at("disk.img")+",format=raw,if=none,id=disk,cache=unsafe",
		"-device", "virtio-blk-pci,drive=disk,addr=0x4",
		"-drive", "file="+at("packages.tar")+",format=raw,if=none,id=packages,readonly=on",
		"-device", "virtio-blk-pci,drive=packages,addr=0x5",
		"-netdev", "tap,id=cable,script=no,downscript=no,ifname=cable",
		"-device", "virtio-net-pci,netdev=cable,romfile=,addr=0x2,mac=52:54:00:12:34:56",
		"-chardev", "file,id=console,append=on,path="+at("console"), "-serial", "chardev:console",
		"-chardev", "socket,id=serve,path="+path, "-serial", "chardev:serve")
	if err := g.outside.Start(g.qemu); err != nil {
		g.t.Fatal(err)
	}
	if err := l.(*net.UnixListener).SetDeadline(time.Now().Add(bootPatience)); err != nil {
		g.t.Fatal(err)
	}
	if g.conn, err = l.Accept(); err != nil {
		g.t.Fatalf("QEMU does not start: %v", err)
	}
	g.lines = bufio.NewReader(g.conn)
	g.booted()
}

// line is the next line that begins with the word.
func (g *debianGuest) line(word string, patience time.Duration) []string {
	g.t.Helper()
	if err := g.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		g.t.Fatal(err)
	}
	for {
		text, err := g.lines.ReadString('\n')
		if err != nil {
			g.t.Fatalf("the guest does not say %q: %v", word, err)
		}
		if fields := strings.Fields(text); len(fields) > 0 && fields[0] == word {
			return fields
		}
	}
}

// booted waits until the guest's boot has ended.
func (g *debianGuest) booted() {
	g.t.Helper()
	begun := time.Now()
	g.line("ready", bootPatience)
	g.t.Logf("booted after %.0f s", time.Since(begun).Seconds())
}

// reboots has the guest reboot: it ends its services and file systems as always, and then QEMU, which is started again.
func (g *debianGuest) reboots() {
	g.t.Helper()
	g.send("systemctl reboot") // the answer may be lost
	ended := make(chan struct{})
	go func() { defer close(ended); _ = g.qemu.Wait() }()
	select {
	case <-ended:
	case <-time.After(bootPatience):
		g.t.Fatal("the guest does not end for its reboot")
	}
	g.conn.Close()
	g.start()
}

// cut takes the power away.
func (g *debianGuest) cut() {
	if g.qemu == nil {
		return
	}
	_ = g.qemu.Process.Kill()
	_ = g.qemu.Wait()
	if g.conn != nil {
		g.conn.Close()
	}
	g.qemu = nil
}

// send has the guest run lines of shell; its answer bears the number.
func (g *debianGuest) send(lines string) (number string) {
	g.t.Helper()
	g.next++
	id := strconv.Itoa(g.next)
	if _, err := fmt.Fprintf(g.conn, "%s %s\n", id, base64.StdEncoding.EncodeToString([]byte(lines))); err != nil {
		g.t.Fatal(err)
	}
	return id
}

// try runs lines of shell in the guest.
func (g *debianGuest) try(lines string) (out string, status int) {
	g.t.Helper()
	begun := time.Now()
	id := g.send(lines)
	answer := g.line("done", answerPatience)
	if len(answer) < 3 || answer[1] != id {
		g.t.Fatalf("the guest answers %q to command %s", answer, id)
	}
	status, err := strconv.Atoi(answer[2])
	if err != nil {
		g.t.Fatal(err)
	}
	if len(answer) > 3 {
		text, err := base64.StdEncoding.DecodeString(answer[3])
		if err != nil {
			g.t.Fatal(err)
		}
		out = string(text)
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(lines, "set -e\n"), "\n")
	g.t.Logf("%.1f s, status %d: %s", time.Since(begun).Seconds(), status, first)
	return out, status
}

// sh runs lines of shell that all have to succeed.
func (g *debianGuest) sh(lines string) string {
	g.t.Helper()
	out, status := g.try("set -e\n" + lines)
	if status != 0 {
		log, _ := g.try("journalctl --no-pager -b -n 60 -u heddle -u networking")
		g.t.Fatalf("status %d of:\n%s\n%s\nlog:\n%s", status, lines, out, log)
	}
	return out
}

// answers reports whether the guest's address answers those outside.
func (g *debianGuest) answers(address string) bool {
	for deadline := time.Now().Add(answerPatience); time.Now().Before(deadline); {
		if _, err := g.outside.Output("ping", "-q", "-c1", "-W1", address); err == nil {
			return true
		}
	}
	return false
}
