package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"heddle/internal/dataplane"
	"heddle/internal/hostdev"
	"heddle/internal/netns"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// heddleConfig is the switch under test: every security check on, as by default, and the MACs told.
func (p *path) heddleConfig() string {
	return fmt.Sprintf(`switches:
  - name: bench
    kind: distributed
    portGroups:
      - {name: guests, vlan: {access: 100}}
ports:
  - {name: a, switch: bench, portGroup: guests, device: %s, mac: %q}
  - {name: b, switch: bench, portGroup: guests, device: %s, mac: %q}
`, portA, p.a.mac, portB, p.b.mac)
}

// setupHeddle joins the guests by a Heddle switch.
func setupHeddle(_ []string) func(context.Context, *path) error {
	return func(_ context.Context, p *path) error {
		host, err := p.hosted(peerHeddle, nil)
		if err != nil {
			return err
		}
		dir, err := os.MkdirTemp("", "hb-heddle-")
		if err != nil {
			return err
		}
		p.clean.add(func() error { return os.RemoveAll(dir) })
		if err := unix.Mount("bpf", dir, "bpf", 0, ""); err != nil {
			return err
		}
		p.clean.add(func() error { return unix.Unmount(dir, unix.MNT_DETACH) })
		pins := filepath.Join(dir, "pins")
		var k *dataplane.Kernel
		err = host.Do(func() (err error) {
			k, err = dataplane.Open(dataplane.Options{PinDir: pins})
			return err
		})
		if err != nil {
			return err
		}
		p.clean.add(func() error { return errors.Join(k.Close(), dataplane.Remove(pins)) })
		return p.applyTo(host, k)
	}
}

func (p *path) applyTo(host *netns.NS, k *dataplane.Kernel) error {
	cfg, err := spec.Parse("heddle.yaml", []byte(p.heddleConfig()))
	if err != nil {
		return err
	}
	pl, err := plan.Resolve(cfg, nil)
	if err != nil {
		return err
	}
	return host.Do(func() error {
		devices, err := hostdev.Open()
		if err != nil {
			return err
		}
		defer devices.Close()
		d := dataplane.Desired{Plan: pl, Facts: plan.Facts{}, Attachments: map[plan.PortID]dataplane.Attachment{}}
		for _, p := range pl.Switches[0].Ports {
			dev, ok, err := devices.Device(p.Device)
			if err != nil || !ok {
				return fmt.Errorf("device %s: found %v, %w", p.Device, ok, err)
			}
			d.Facts[p.ID] = plan.Fact{Up: dev.Up(), MTU: dev.MTU}
			d.Attachments[p.ID] = dataplane.Attachment{Ifindex: dev.Index, PeerRedirect: dev.Kind == hostdev.Veth && dev.Peer.Elsewhere}
		}
		return k.Apply(d)
	})
}
