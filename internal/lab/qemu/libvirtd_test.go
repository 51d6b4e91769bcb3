package qemu_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// libvirtd is a libvirt daemon in the namespaces of a test. Its configuration, state, log and processes are its own,
// and are removed with the test, even if that is killed.
type libvirtd struct {
	*heddleHost
	name   string         // the host's
	orders io.WriteCloser // of the keeper below
}

// keeper is the first process of the daemon's PID namespace. It makes the daemon's directories in a mount namespace,
// and starts and stops the daemon by commands on its input; when it ends, all processes there end. Guests outlive the
// daemon, as on a host.
const keeper = `set -e
mount --make-rprivate /
mount -t sysfs sysfs /sys
for d in /run /var/log /var/lib /var/cache; do mount -t tmpfs tmpfs $d; done
mkdir -p /run/libvirt /etc/libvirt /etc/default
mount --bind "$1/run" /run/libvirt
mount --bind "$1/etc" /etc/libvirt
mount --bind "$1/default" /etc/default
mount --bind "$1/passwd" /etc/passwd
mount --bind "$1/group" /etc/group
hostname "$2"
exec 3<&0
{
	while read -r order <&3; do
		case $order in
		start) libvirtd & daemon=$! ;;
		stop) kill "$daemon"; wait "$daemon" || : ;;
		esac
	done
} &
# Guests whose parent has ended are this process's, and libvirt waits until they are reaped.
wait $!`

// newLibvirtd starts the daemon of a host that it knows by that name, with Heddle's hook installed as packaged.
func newLibvirtd(t *testing.T, ctx context.Context, h *heddleHost, name string) *libvirtd {
	t.Helper()
	dir := filepath.Join(h.Dir, "libvirt")
	l := &libvirtd{heddleHost: h, name: name}
	l.configuration(t, dir)
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sh", "-c", keeper, "keeper", dir, name)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(h.Binary())+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var says bytes.Buffer
	cmd.Stderr = &says
	var err error
	if l.orders, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := h.NS.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.orders.Close()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("libvirtd said:\n%s", says.String())
		}
	})
	l.start(t, ctx)
	return l
}

// configuration writes what the daemon reads.
func (l *libvirtd) configuration(t *testing.T, dir string) {
	t.Helper()
	hook, err := os.ReadFile("../../../packaging/libvirt/heddle")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"run/.keep": "",
		"etc/libvirtd.conf": "auth_unix_rw = \"none\"\nunix_sock_group = \"root\"\nlog_outputs = " +
			"\"3:stderr\"\nhost_uuid = \"" + hostUUID(l.name) + "\"\n",
		"etc/qemu.conf": "user = \"root\"\ngroup = \"root\"\ndynamic_ownership = 0\nremember_owner = " +
			"0\nsecurity_driver = \"none\"\ncgroup_controllers = []\nnamespaces = []\nstdio_handler = \"file\"\n",
		"etc/hooks/qemu.d/heddle": string(hook),
		// Called after Heddle's hook: it records when libvirt called the hooks, and with which arguments.
		"etc/hooks/qemu.d/recorder": "#!/bin/sh\ncat >/dev/null\necho \"$(date +%s.%N) $*\" >>" +
			filepath.Join(dir, "calls") + "\n",
	}
	// libvirt looks its users up by name; its package for system daemons, which is not needed otherwise, would
	// create them.
	for name, line := range map[string]string{
		"passwd": "libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin\n",
		"group":  "libvirt-qemu:x:64055:\n"} {
		b, err := os.ReadFile("/etc/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(b, []byte("\nlibvirt-qemu:")) {
			b = append(b, line...)
		}
		files[name] = string(b)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "default"), 0o755); err != nil {
		t.Fatal(err)
	}
	l.settings(t)
}

// call is one call of the hooks.
type call struct {
	at   time.Time
	args string // such as "vm1 stopped end -"
}

// calls are what libvirt has called the hooks with.
func (l *libvirtd) calls(t *testing.T) (list []call) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(l.Dir, "libvirt/calls"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		stamp, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		s, ns, _ := strings.Cut(stamp, ".")
		seconds, errS := strconv.ParseInt(s, 10, 64)
		nanos, errN := strconv.ParseInt(ns, 10, 64)
		if errS != nil || errN != nil {
			t.Fatalf("recorded: %q", line)
		}
		list = append(list, call{time.Unix(seconds, nanos), args})
	}
	return list
}

// hostUUID tells hosts apart for libvirt.
func hostUUID(name string) string {
	h := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// uri is the daemon's address.
func (l *libvirtd) uri() string {
	return "qemu+unix:///system?socket=" + filepath.Join(l.Dir, "libvirt/run/libvirt-sock")
}

// settings is the hook's /etc/default/heddle-libvirt; the last line with a name counts.
func (l *libvirtd) settings(t *testing.T, more ...string) {
	t.Helper()
	text := "HEDDLE_RUN_DIR=" + filepath.Join(l.Dir, "run") + "\n" + strings.Join(more, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(l.Dir, "libvirt/default/heddle-libvirt"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (l *libvirtd) order(t *testing.T, what string) {
	t.Helper()
	if _, err := io.WriteString(l.orders, what+"\n"); err != nil {
		t.Fatal(err)
	}
}

// start starts the daemon and waits until it answers.
func (l *libvirtd) start(t *testing.T, ctx context.Context) {
	t.Helper()
	l.order(t, "start")
	for {
		_, err := l.virsh(ctx, "", "list")
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("libvirtd does not answer: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// controls waits until a restarted daemon has taken over the domain, including its hooks. Before that it answers
// questions, but commands to the domain may fail.
func (l *libvirtd) controls(t *testing.T, ctx context.Context, domain string) {
	t.Helper()
	for {
		out, err := l.virsh(ctx, "", "domcontrol", domain)
		if err == nil && strings.TrimSpace(out) == "ok" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("libvirtd does not control %s: %s %v", domain, out, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop stops the daemon and waits until it is gone.
func (l *libvirtd) stop(t *testing.T, ctx context.Context) {
	t.Helper()
	l.order(t, "stop")
	for ctx.Err() == nil {
		if _, err := l.virsh(ctx, "", "list"); err != nil {
			return
		}
	}
	t.Fatal("libvirtd does not stop")
}

// virsh runs a command of libvirt's with that standard input.
func (l *libvirtd) virsh(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "virsh", append([]string{"-q", "-c", l.uri()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("virsh %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

// must is virsh that may not fail.
func (l *libvirtd) must(t *testing.T, ctx context.Context, stdin string, args ...string) string {
	t.Helper()
	out, err := l.virsh(ctx, stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
