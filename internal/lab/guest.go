package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"heddle/internal/lab/qemu"
	"heddle/internal/lab/scenario"
)

// GuestSpec is what the process that runs one QEMU guest must know; it is passed on its command line as JSON.
type GuestSpec struct {
	Name      string   `json:"name"`
	Tap       string   `json:"tap"`
	NIC       string   `json:"nic"`
	MAC       string   `json:"mac"`
	Addresses []string `json:"addresses"`
	Gateway   string   `json:"gateway,omitempty"`
	MTU       int      `json:"mtu"`
	Queues    int      `json:"queues"`
	// Ready is a file that appears when the guest has booted.
	Ready string `json:"ready"`
}

// startGuests starts, for every VM of kind qemu, a process in its host's namespace that runs the machine as long as the
// lab exists.
func (l *Lab) startGuests(context.Context) error {
	for i := range l.Scenario.VMs {
		v := &l.Scenario.VMs[i]
		if v.Kind != scenario.QEMU {
			continue
		}
		g := GuestSpec{
			Name: v.Name, Tap: l.Scenario.DeviceOf(v), NIC: string(v.NIC), MAC: v.MAC.String(), MTU: v.MTU,
			Queues: v.Queues, Addresses: []string{}, Ready: l.readyFile(v.Name),
		}
		for _, a := range v.Addresses {
			g.Addresses = append(g.Addresses, a.String())
		}
		if v.Gateway.IsValid() {
			g.Gateway = v.Gateway.String()
		}
		text, err := json.Marshal(g)
		if err != nil {
			return err
		}
		p, err := l.start(l.ns[v.Host], filepath.Join(l.Dir, "log", v.Name+".log"), 0, l.opts.Program, "lab", "guest",
			string(text))
		if err != nil {
			return err
		}
		l.processes[v.Name] = p
	}
	return nil
}

func (l *Lab) readyFile(vm string) string { return filepath.Join(l.Dir, "log", vm+".ready") }

func (l *Lab) guestReady(_ context.Context, vm string) error {
	if _, err := os.Stat(l.readyFile(vm)); err != nil {
		return errors.New("the guest has not booted yet")
	}
	return nil
}

// KeepGuest runs a QEMU guest in the caller's namespace until ctx ends. It is all that the process does which
// startGuests starts.
func KeepGuest(ctx context.Context, g GuestSpec) error {
	mac, err := net.ParseMAC(g.MAC)
	if err != nil {
		return err
	}
	guest, err := qemu.Start(ctx, qemu.Options{
		Name: g.Name, Tap: g.Tap, NIC: qemu.NIC(g.NIC), MAC: mac, Addrs: g.Addresses, MTU: g.MTU, Queues: g.Queues,
		Console: os.Stdout,
	})
	if err != nil {
		return err
	}
	err = prepareGuest(ctx, guest, g)
	if err == nil {
		select {
		case <-ctx.Done():
		case <-guest.Done():
			err = fmt.Errorf("guest %s has stopped", g.Name)
		}
	}
	return errors.Join(err, guest.Stop())
}

// prepareGuest waits for the machine, sets its route and signals that it is ready.
func prepareGuest(ctx context.Context, guest *qemu.Guest, g GuestSpec) error {
	if err := guest.Ready(ctx); err != nil {
		return err
	}
	if g.Gateway != "" {
		r, err := guest.Run(ctx, "ip route add default via "+g.Gateway)
		if err != nil {
			return err
		}
		if r.ExitCode != 0 {
			return fmt.Errorf("guest %s: set the route by way of %s: %s", g.Name, g.Gateway, r.Stderr)
		}
	}
	return os.WriteFile(g.Ready, nil, 0o644)
}
