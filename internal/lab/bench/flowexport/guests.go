package flowexport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"heddle/internal/lab/multiqueue"
	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
	"heddle/internal/lab/traffic"
)

// guest is a VM under QEMU's emulation. It has a CPU for each queue of its adapter.
type guest struct {
	*qemu.Guest
	// sinks are where it listens, by the arguments of each sink.
	sinks map[string][]netip.AddrPort
}

const (
	// guestProgram is the heddle program in a guest.
	guestProgram = "/bin/heddle"
	// guestMemory holds the program twice while the guest unpacks it.
	guestMemory = 512 // MB
	// bootPatience ends a hopeless wait; emulated, beside much else, a boot may take long.
	bootPatience = 5 * time.Minute
	// killPatience is how long a guest may take to end a sender.
	killPatience = 30 * time.Second
	// guestDevice is the only adapter of a guest.
	guestDevice = "eth0"
)

// startGuests starts the VMs under QEMU, all at once, and returns when they have booted.
func (r *rig) startGuests(ctx context.Context, say func(string)) error {
	for _, s := range sides {
		r.guests[s] = map[int]*guest{}
		for n, a := range r.fleet.adapters {
			if !a.emulated() {
				continue
			}
			say("starting guests under QEMU")
			if err := r.startGuest(ctx, s, n, a); err != nil {
				return err
			}
		}
	}
	limit, cancel := context.WithTimeout(ctx, bootPatience)
	defer cancel()
	return r.eachGuest(func(g *guest) error { return g.Ready(limit) })
}

// startGuest starts one. It outlives ctx, so that close can end it in good order.
func (r *rig) startGuest(ctx context.Context, s side, n int, a adapter) error {
	mac, err := net.ParseMAC(s.mac(n))
	if err != nil {
		return err
	}
	started, err := qemu.Start(context.WithoutCancel(ctx), qemu.Options{
		Name: s.vm(n), NetNS: r.hosts[s], Tap: s.device(n), NIC: qemu.VirtioNet, MAC: mac, Addrs: s.addresses(n),
		Queues: a.queues, MemoryMB: guestMemory, Files: map[string]string{guestProgram: r.opts.Heddle},
	})
	if err != nil {
		return err
	}
	r.guests[s][n] = &guest{started, map[string][]netip.AddrPort{}}
	if err := unix.Setpriority(unix.PRIO_PGRP, started.Pid(), vmNice); err != nil {
		return fmt.Errorf("give guest %s a low priority: %w", s.vm(n), err)
	}
	return nil
}

// eachGuest does something with all guests at once.
func (r *rig) eachGuest(do func(*guest) error) error {
	var group errgroup.Group
	for _, s := range sides {
		for _, g := range r.guests[s] {
			group.Go(func() error { return do(g) })
		}
	}
	return group.Wait()
}

func (r *rig) stopGuests() error {
	return r.eachGuest(func(g *guest) error { return g.Stop() })
}

// pauseGuests stops the CPUs of all guests: those that are not measured take nothing from those that are.
func (r *rig) pauseGuests(ctx context.Context) error {
	return r.eachGuest(func(g *guest) error {
		_, err := g.QMP(ctx, "stop", nil)
		return err
	})
}

// wake lets the guests of a cell run until the returned function is called; there may be none.
func (r *rig) wake(ctx context.Context, c cell) (pause func() error, err error) {
	command := func(ctx context.Context, what string) error {
		for n := range r.pairsOf(c) {
			for _, s := range sides {
				if g := r.guests[s][n]; g != nil {
					if _, err := g.QMP(ctx, what, nil); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
	return func() error { return command(context.WithoutCancel(ctx), "stop") }, command(ctx, "cont")
}

// do runs a shell command in the guest; one that fails is an error.
func (g *guest) do(ctx context.Context, format string, args ...any) (string, error) {
	res, err := g.Run(ctx, fmt.Sprintf(format, args...))
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("guest %s: exit status %d: %s", g.Name(), res.ExitCode, strings.TrimSpace(res.Stderr))
	}
	return res.Stdout, err
}

// reach waits until the guest reaches an address.
func (g *guest) reach(ctx context.Context, address string) error {
	_, err := g.do(ctx, "until ping -c 1 -W 1 %s >/dev/null; do :; done", address)
	return err
}

// betweenGuests sends a load from the sender of a pair to its sink until ctx ends.
func (r *rig) betweenGuests(ctx context.Context, n int, load traffic.Load) error {
	to, err := r.guests[rx][n].listen(ctx, load, rx.address(n, 0))
	if err != nil {
		return err
	}
	g := r.guests[tx][n]
	_, err = g.do(ctx, "%s traffic %s", guestProgram, strings.Join(load.Args(to), " "))
	if ctx.Err() != nil {
		// The guest takes its orders one by one: when it runs this, it has killed the sender.
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), killPatience)
		defer cancel()
		_, killErr := g.do(limit, "true")
		err = errors.Join(err, killErr)
	}
	return err
}

// listen has the guest listen for a load, as long as it runs, and returns where.
func (g *guest) listen(ctx context.Context, load traffic.Load, address string) ([]netip.AddrPort, error) {
	at, err := netip.ParseAddr(address)
	if err != nil {
		return nil, err
	}
	args := traffic.SinkOptions{Kind: load.Kind, At: netip.AddrPortFrom(netip.IPv4Unspecified(), 0)}.Args()
	args = append(args, "--sessions", strconv.Itoa(max(load.Sessions, 1)))
	key := strings.Join(args, " ")
	if known := g.sinks[key]; known != nil {
		return known, nil
	}
	file := fmt.Sprintf("/tmp/sink%d", len(g.sinks))
	// The standard input of a sink is one that never ends while the guest runs.
	out, err := g.do(ctx, "sleep 1000000 | %s traffic %s >%s 2>&1 & until [ -s %s ]; do usleep 20000; done; "+
		"head -n 1 %s", guestProgram, key, file, file, file)
	if err != nil {
		return nil, err
	}
	var said struct{ Sessions []netip.AddrPort }
	if err := json.Unmarshal([]byte(out), &said); err != nil || len(said.Sessions) == 0 {
		return nil, errors.Join(fmt.Errorf("guest %s: its sink said %q", g.Name(), out), err)
	}
	for i, s := range said.Sessions {
		said.Sessions[i] = netip.AddrPortFrom(at, s.Port())
	}
	g.sinks[key] = said.Sessions
	return said.Sessions, nil
}

// transactionMark is how many transactions the guest has completed, by its own clock: the way of the answer out of an
// emulated machine takes a time that is no part of the interval.
func (g *guest) transactionMark(ctx context.Context) (m mark, err error) {
	out, err := g.do(ctx, "cat /proc/uptime /proc/net/snmp")
	if err != nil {
		return m, err
	}
	up, _, _ := strings.Cut(out, " ")
	seconds, err := strconv.ParseFloat(up, 64)
	if err != nil {
		return m, fmt.Errorf("guest %s: its /proc/uptime: %w", g.Name(), err)
	}
	m.at = time.Unix(0, int64(seconds*float64(time.Second)))
	m.done, err = tcpResets(out)
	m.sent = m.done
	return m, err
}

// queues are what the adapter's driver has counted by queue.
func (g *guest) queues(ctx context.Context) (all []multiqueue.Counts, err error) {
	out, err := g.do(ctx, "%s lab queues %s", guestProgram, guestDevice)
	if err == nil {
		err = json.Unmarshal([]byte(out), &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read the queues of guest %s: %w", g.Name(), err)
	}
	return all, nil
}

// guestsCannotRun is why this machine cannot run guests, or nil. It makes their image, where that is not there yet.
func guestsCannotRun(ctx context.Context) error {
	if err := qemu.Installed(); err != nil {
		return err
	}
	_, err := image.Build(ctx, image.Options{Flavour: qemu.VirtioNet.Flavour()})
	return err
}
