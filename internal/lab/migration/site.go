package migration

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/api"
	"heddle/internal/diagnose/stats"
	"heddle/internal/lab/netns"
	"heddle/internal/spec"
)

// readyTime is for machines that have much else to do: it costs nothing on others.
const (
	readyTime = time.Minute
	lookEvery = 5 * time.Millisecond
	// copyTime is how long a move waits for a first copy of the port: hosts whose controller orders none go without.
	copyTime = 5 * time.Second
)

// site is two hosts that the guest moves between, 1 and 2.
type site interface {
	node(host int) string
	// start connects the guest's device on a host where it runs.
	start(ctx context.Context, host int, device string) error
	// prepare connects the guest's device on a host to which it will come, and returns whether the host has a copy of
	// what belongs to the port.
	prepare(ctx context.Context, host int, device string) (copied bool, err error)
	// stopped tells a host that the guest has stopped there.
	stopped(ctx context.Context, host int) error
	// resumed tells a host that the guest runs there, in the way in which its hypervisor does.
	resumed(ctx context.Context, host int, device string) error
	// arrived waits until a host has taken in that the guest runs there.
	arrived(ctx context.Context, host int) error
	// release disconnects the guest's device on the host that it has left.
	release(ctx context.Context, host int, device string) error
	// shown are the port's counters as a host shows them; nil for a host that has none.
	shown(ctx context.Context, host int) (map[string]uint64, error)
}

// heddleSite is two hosts with Heddle. The guest's manager calls the agents' API.
type heddleSite struct {
	s *scene
	// monitors is the directory with the monitors of real guests, each named after its tap; empty without.
	monitors string
	// overlay: the port is in the overlay segment.
	overlay bool
}

const (
	port    = "guest"
	vmID    = "6d0f6a3e-3f0c-4d0f-9a63-5b8b8d6a0f11"
	adapter = "net0"
)

func (h heddleSite) node(host int) string       { return fmt.Sprintf("esx%d", host) }
func (h heddleSite) agent(host int) *api.Client { return h.s.lab.Agent(h.node(host)) }
func (h heddleSite) wish(device string) api.Connect {
	q := api.Connect{Port: spec.Port{Name: port, Switch: "prod", PortGroup: "vms", Device: device, MAC: guestMAC},
		VM: vmID, Adapter: adapter}
	if h.overlay {
		q.Port.Switch, q.Port.PortGroup = "overlay", "segment"
	}
	if h.monitors != "" {
		q.Monitor = spec.Monitor{Socket: filepath.Join(h.monitors, device)}
	}
	return q
}

func (h heddleSite) start(ctx context.Context, host int, device string) error {
	if _, err := h.agent(host).Connect(ctx, h.wish(device)); err != nil {
		return err
	}
	return h.await(ctx, host, "its port is up", func(p *api.Port) bool { return p.State == api.Up && p.Wait == nil })
}

func (h heddleSite) prepare(ctx context.Context, host int, device string) (bool, error) {
	if _, err := h.agent(host).ConnectIncoming(ctx, api.Incoming{Connect: h.wish(device)}); err != nil {
		return false, err
	}
	err := h.await(ctx, host, "its port waits for the guest", func(p *api.Port) bool { return p.Wait != nil })
	if err != nil {
		return false, err
	}
	for deadline := time.Now().Add(copyTime); time.Now().Before(deadline); {
		list, err := h.agent(host).PortMoves(ctx, api.PortMoveOf{Port: port})
		if err != nil {
			return false, err
		}
		for _, m := range list {
			if m.Side == api.MoveTarget && m.Copies > 0 && !over(m.Phase) {
				return true, nil
			}
		}
		if err := pause(ctx, lookEvery); err != nil {
			return false, err
		}
	}
	return false, nil
}

// silent is when the port became silent on the host that the guest has left.
func (h heddleSite) silent(ctx context.Context, host int) (at time.Time, err error) {
	list, err := h.agent(host).PortMoves(ctx, api.PortMoveOf{Port: port})
	for _, m := range list {
		for _, s := range m.Steps {
			if m.Side == api.MoveSource && s.Phase == "stopped" {
				at = s.At
			}
		}
	}
	if err == nil && at.IsZero() {
		err = fmt.Errorf("host %s does not say when its port %s became silent", h.node(host), port)
	}
	return at, err
}

// over reports whether a move in that phase is a former one.
func over(p api.MovePhase) bool { return p == "active" || p == "released" || p == "cancelled" }

func (h heddleSite) stopped(ctx context.Context, host int) error {
	_, err := h.agent(host).SilencePort(ctx, api.PortMoveOf{Port: port})
	return err
}

// resumed does nothing: the guest's first frame says it.
func (h heddleSite) resumed(context.Context, int, string) error { return nil }

func (h heddleSite) arrived(ctx context.Context, host int) error {
	return h.await(ctx, host, "its port speaks for the guest", func(p *api.Port) bool {
		return p.State == api.Up && p.Wait == nil
	})
}

func (h heddleSite) release(ctx context.Context, host int, device string) error {
	if err := h.agent(host).ReleaseMovedPort(ctx, api.PortMoveOf{Port: port}); err != nil {
		return err
	}
	return h.s.unplug(h.node(host), device)
}

// shown are the port's counters on the host, without what is refused in normal operation: copies for the guest's own
// sender, and those that came while the guest was not there.
func (h heddleSite) shown(ctx context.Context, host int) (map[string]uint64, error) {
	list, err := h.agent(host).Stats(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if p.Name == port && !p.Uplink {
			all := map[string]uint64{}
			for _, c := range p.Counters {
				all[c.Name] = c.Value
			}
			all["packetsOutDropped"] -= min(stats.Filtered(p.Refused, false), all["packetsOutDropped"])
			return all, nil
		}
	}
	return nil, fmt.Errorf("host %s shows no counters of port %s", h.node(host), port)
}

// await polls the agent's state until ok accepts the guest's port.
func (h heddleSite) await(ctx context.Context, host int, what string, ok func(*api.Port) bool) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		st, err := h.agent(host).State(ctx)
		if err == nil {
			for i := range st.Ports {
				if st.Ports[i].Name == port && ok(&st.Ports[i]) {
					return nil
				}
			}
		}
		if pause(ctx, lookEvery) != nil {
			return errors.Join(fmt.Errorf("host %s: not within %v: %s", h.node(host), readyTime, what), err)
		}
	}
}

// bridgeSite is two hosts whose switch is a Linux bridge, as it is used most: the device is in the bridge from when it
// is made, and QEMU announces the guest by RARP when it runs.
type bridgeSite struct{ s *scene }

func (b bridgeSite) node(host int) string { return fmt.Sprintf("br%d", host) }

func (b bridgeSite) start(_ context.Context, host int, device string) error {
	return b.s.nodes[b.node(host)].Do(func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		br, err := netlink.LinkByName("bridge0")
		if err != nil {
			return err
		}
		return netlink.LinkSetMaster(l, br)
	})
}

func (b bridgeSite) prepare(ctx context.Context, host int, device string) (bool, error) {
	return false, b.start(ctx, host, device)
}

func (b bridgeSite) stopped(context.Context, int) error { return nil }

// resumed sends the announcement that QEMU's device sends first (qemu: net/announce.c); the guest's own traffic makes
// the others needless.
func (b bridgeSite) resumed(_ context.Context, host int, _ string) error {
	name := fmt.Sprintf("to%d-%d", host, b.s.moved)
	return sendRARP(b.s.nodes[middle], name, b.s.mac)
}

func (b bridgeSite) arrived(context.Context, int) error { return nil }

func (b bridgeSite) release(_ context.Context, host int, device string) error {
	return b.s.unplug(b.node(host), device)
}

func (b bridgeSite) shown(context.Context, int) (map[string]uint64, error) { return nil, nil }

// sendRARP sends a RARP request of a MAC by a device.
func sendRARP(ns *netns.NS, device string, mac net.HardwareAddr) error {
	return ns.Do(func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, rarp(mac), 0, &unix.SockaddrLinklayer{Ifindex: l.Attrs().Index, Halen: 6})
	})
}

// rarp is "who am I", as a broadcast (RFC 903).
func rarp(mac net.HardwareAddr) []byte {
	const requestReverse = 3
	frame := []byte(strings.Repeat("\xff", 6))
	frame = append(frame, mac...)
	for _, field := range []uint16{0x8035, 1, 0x0800, 0x0604, requestReverse} {
		frame = binary.BigEndian.AppendUint16(frame, field)
	}
	for range 2 { // sender and target: the MAC, and no address
		frame = append(append(frame, mac...), 0, 0, 0, 0)
	}
	return append(frame, make([]byte, 60-len(frame))...)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
