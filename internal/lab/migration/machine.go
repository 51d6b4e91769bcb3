package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heddle/internal/host/qmp"
	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
)

const (
	// guestProgram is where this program is in the guest.
	guestProgram = "/bin/heddle"
	// guestMemory is in MiB: the program alone has 40, and lies in memory.
	guestMemory = 256
	// firstPort is the first port at which a QEMU waits for its guest.
	firstPort = 4440
)

// errGuestEnded says that an emulated guest has ended without being asked: after a move, QEMU's emulation seldom lets
// the guest's kernel fail.
var errGuestEnded = errors.New("the emulated guest has ended by itself")

// machine is one QEMU of the guest, on a host.
type machine struct {
	*qemu.Guest
	tap  string
	host int
	ear  *ear
	quit atomic.Bool // it was asked to end

	mu               sync.Mutex
	stopped, resumed time.Time
	again            chan struct{} // closed when the guest runs here
}

// event notes when the guest stops and runs.
func (m *machine) event(e qmp.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e.Name {
	case qmp.Stop:
		m.stopped = e.Time
	case qmp.Resume:
		if m.resumed.IsZero() {
			m.resumed = e.Time
			close(m.again)
		}
	}
}

func (m *machine) end() error {
	m.quit.Store(true)
	err := m.Stop()
	if m.ear != nil {
		err = errors.Join(err, m.ear.close())
		m.ear = nil
	}
	return err
}

// guestLacks is why this machine can't run an emulated guest, if it can't.
func guestLacks(ctx context.Context) error {
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		return fmt.Errorf("QEMU is not installed: install the package qemu-system-x86: %w", err)
	}
	_, err := image.Build(ctx, image.Options{Flavour: qemu.VirtioNet.Flavour()})
	return err
}

// endedItself is errGuestEnded where that is what an error comes from: what was going on notices it in several ways.
func (v *voyage) endedItself(ctx context.Context, err error) error {
	if why := context.Cause(ctx); errors.Is(why, errGuestEnded) {
		return why
	}
	if errors.Is(err, qemu.ErrEnded) || errors.Is(err, qmp.ErrClosed) {
		said := ""
		for _, m := range v.machines {
			if m.ear != nil {
				said += m.Said()
			}
		}
		return fmt.Errorf("%w: %w%s", errGuestEnded, err, said)
	}
	return err
}

// launch starts a QEMU of the guest on a host; incoming says where it waits for the guest, if it does.
func (v *voyage) launch(ctx context.Context, host int, incoming string) (*machine, error) {
	v.s.moved++
	m := &machine{tap: fmt.Sprintf("vm-guest%d", v.s.moved), host: host, again: make(chan struct{})}
	g, err := qemu.Start(ctx, qemu.Options{Name: "guest", NetNS: v.s.nodes[v.site.node(host)], Tap: m.tap, MAC: v.s.mac,
		Addrs: []string{guestIP + "/24"}, MemoryMB: guestMemory, Files: map[string]string{guestProgram: v.program},
		OnEvent: m.event, Incoming: incoming, ExtraArgs: []string{"-uuid", vmID,
			"-qmp", "unix:" + filepath.Join(v.site.monitors, m.tap) + ",server=on,wait=off",
			// Its frames are as long as on a wire, so that every count means the same.
			"-global", "virtio-net-pci.host_tso4=off", "-global", "virtio-net-pci.host_tso6=off"}})
	if err != nil {
		return nil, err
	}
	m.Guest = g
	v.machines = append(v.machines, m)
	go func() {
		<-g.Done()
		if !m.quit.Load() && ctx.Err() == nil {
			v.failed(fmt.Errorf("%w%s", errGuestEnded, g.Said()))
		}
	}()
	m.ear, err = listen(v.s.nodes[v.site.node(host)], m.tap, v.s.mac)
	return m, err
}

// transferred waits until QEMU has moved the guest, and returns for how long it says that the guest stood still.
func (m *machine) transferred(ctx context.Context) (downtime time.Duration, err error) {
	for {
		out, err := m.QMP(ctx, "query-migrate", nil)
		if err != nil {
			return 0, err
		}
		var q struct {
			Status   string
			Downtime int64
		}
		if err := json.Unmarshal(out, &q); err != nil {
			return 0, fmt.Errorf("QEMU's state of the migration: %w", err)
		}
		switch q.Status {
		case "completed":
			return time.Duration(q.Downtime) * time.Millisecond, nil
		case "failed", "cancelled":
			return 0, fmt.Errorf("QEMU's migration: %s", out)
		}
		if err := pause(ctx, 4*lookEvery); err != nil {
			return 0, context.Cause(ctx)
		}
	}
}

// do runs a shell command in the guest; one that fails is an error.
func (m *machine) do(ctx context.Context, format string, args ...any) (string, error) {
	res, err := m.Run(ctx, fmt.Sprintf(format, args...))
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("in the guest: exit status %d: %s", res.ExitCode, strings.TrimSpace(res.Stderr))
	}
	return res.Stdout, err
}
