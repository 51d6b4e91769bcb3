package adopttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/api"
	"heddle/internal/netns"
	"heddle/internal/testkit"
)

const (
	patience = time.Minute
	poll     = 10 * time.Millisecond
)

// host is a namespace with the real program.
type host struct {
	t      *testing.T
	ns     *netns.NS
	dir    string
	binary string
	agent  *exec.Cmd
	log    bytes.Buffer
	api.Service
}

func newHost(t *testing.T, ns *netns.NS) *host {
	t.Helper()
	testkit.Root(t)
	testkit.Tool(t, "go")
	h := &host{t: t, ns: ns, dir: t.TempDir()}
	h.binary = filepath.Join(h.dir, "heddle")
	build := exec.Command("go", "build", "-o", h.binary, "heddle/cmd/heddle")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build heddle: %v: %s", err, out)
	}
	h.Service = api.NewClient(api.SocketPath(filepath.Join(h.dir, "run"), "default"))
	t.Cleanup(func() {
		if h.agent != nil {
			h.kill(syscall.SIGTERM)
		}
		if err := h.heddle("down", "--purge"); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the agent said:\n%s", h.log.String())
		}
	})
	return h
}

func (h *host) command(args ...string) *exec.Cmd {
	cmd := exec.Command(h.binary, args...)
	cmd.Env = append(os.Environ(), "HEDDLE_RUN_DIR="+filepath.Join(h.dir, "run"), "HEDDLE_STATE_DIR="+filepath.Join(h.dir, "state"))
	return cmd
}

// heddle runs a command of the program on the host.
func (h *host) heddle(args ...string) error {
	cmd := h.command(args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := h.ns.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("heddle %s: %w: %s", strings.Join(args, " "), err, out.String())
	}
	return nil
}

// start starts the agent, with a configuration unless it is empty, and waits until it serves.
func (h *host) start(config string) {
	h.t.Helper()
	h.agent = h.command("agent")
	h.agent.Stderr = &h.log
	if err := h.ns.Start(h.agent); err != nil {
		h.t.Fatal(err)
	}
	h.await("the agent serves", func() bool { _, err := h.State(h.t.Context()); return err == nil })
	if config != "" {
		h.apply(config)
	}
}

// kill sends the agent a signal and waits for its end.
func (h *host) kill(s syscall.Signal) {
	if err := h.agent.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		h.t.Error(err)
	}
	_ = h.agent.Wait() // how it ended is no matter: a killed process reports that
	h.agent = nil
}

// reboot has everything that the agent remembers be of an earlier boot.
func (h *host) reboot() {
	h.t.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		h.t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(h.dir, "state", "default", "*.json"))
	if err != nil || len(files) < 2 {
		h.t.Fatalf("%v: %v", err, files)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil {
			err = os.WriteFile(f, bytes.ReplaceAll(b, bytes.TrimSpace(boot), []byte("another boot")), 0o600)
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *host) apply(config string) {
	h.t.Helper()
	if _, err := h.Apply(h.t.Context(), api.Apply{File: "heddle.yaml", Content: config}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) await(what string, holds func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(poll) {
		if time.Now().After(deadline) {
			h.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// begun is how many steps of a move the journal says have been begun; 0 without a journal.
func (h *host) begun() int {
	b, err := os.ReadFile(filepath.Join(h.dir, "state", "default", "adoptions.json"))
	if err != nil {
		return 0
	}
	var j struct {
		Records []struct {
			Step int `json:"step"`
		} `json:"records"`
	}
	if json.Unmarshal(b, &j) != nil || len(j.Records) == 0 {
		return 0
	}
	return j.Records[0].Step
}

// dialHere connects on the calling thread, whose network namespace counts: a net.Dialer may use another.
func dialHere(to *net.TCPAddr) (net.Conn, error) {
	family := unix.AF_INET6
	var address unix.Sockaddr
	if four := to.IP.To4(); four != nil {
		family, address = unix.AF_INET, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(four)}
	} else {
		address = &unix.SockaddrInet6{Port: to.Port, Addr: [16]byte(to.IP)}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "tcp")
	defer f.Close()
	if err := unix.Connect(fd, address); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}
