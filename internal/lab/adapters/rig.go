package adapters

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"heddle/internal/api"
	"heddle/internal/lab"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
	"heddle/internal/lab/scenario"
	"heddle/internal/lab/traffic"
	"heddle/internal/spec"
)

// The lab: one host, and a namespace as the other end of every stream. The guests' ports are connected when their taps
// are there.
const labText = `name: guest-adapters
hosts:
  - name: esx1
    config:
      switches:
        - name: lab
          kind: distributed
          mtu: 9000
          portGroups: [{name: web}]
      ports:
        - {name: peer, switch: lab, portGroup: web, device: vm-peer}
vms:
  - {name: peer, host: esx1, addresses: [198.18.0.254/24], mtu: 9000}
`

const (
	host     = "esx1"
	peerName = "peer"
	// guestProgram is the heddle program in a guest.
	guestProgram = "/bin/heddle"
	sinkPort     = 5001
	// guestMemory holds the program twice while the guest unpacks it.
	guestMemory = 512 // MB
)

func peerAddress() netip.Addr { return netip.MustParseAddr("198.18.0.254") }

// rig is the lab that is up, with its guests.
type rig struct {
	effort
	lab    *lab.Lab
	peer   *netns.NS
	sink   *traffic.Sink // at the peer
	guests []*guest
}

// guest is a machine with one adapter.
type guest struct {
	adapter
	*qemu.Guest
	addr netip.Addr
}

// build starts the lab and the guests; on an error nothing of them is left.
func build(ctx context.Context, o Options, e effort) (_ *rig, err error) {
	if o.Program == "" {
		if o.Program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find the heddle program: %w", err)
		}
	}
	o.Progress("making the guests' image")
	img, err := image.Build(ctx, image.Options{Flavour: image.Host})
	if err != nil {
		return nil, err
	}
	s, err := scenario.Parse(Name+".yaml", []byte(labText), nil)
	if err != nil {
		return nil, err
	}
	l, err := lab.Build(ctx, s, lab.Options{Name: fmt.Sprintf("adapters%d", os.Getpid()), RunDir: o.RunDir,
		Program: o.Program, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	r := &rig{effort: e, lab: l}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.peer, err = l.NS(peerName); err != nil {
		return nil, err
	}
	r.sink, err = traffic.Listen(traffic.Endpoint{NS: r.peer}, traffic.SinkOptions{Kind: traffic.KindStream,
		At: netip.AddrPortFrom(peerAddress(), sinkPort)})
	if err != nil {
		return nil, err
	}
	return r, r.startGuests(ctx, o, img)
}

// startGuests starts them all at once and waits until each reaches the peer.
func (r *rig) startGuests(ctx context.Context, o Options, img *image.Image) error {
	ns, err := r.lab.NS(host)
	if err != nil {
		return err
	}
	for i, a := range r.adapters {
		addr := netip.AddrFrom4([4]byte{198, 18, 0, byte(i + 1)})
		mac := net.HardwareAddr{2, 0, 0, 0, 0xad, byte(i + 1)}
		tap := fmt.Sprintf("guest%d", i)
		g, err := qemu.Start(ctx, qemu.Options{Name: a.name, NetNS: ns, Tap: tap, NIC: a.nic, Queues: a.queues,
			MAC:   mac,
			Addrs: []string{addr.String() + "/24"}, MTU: slices.Max(r.mtus), MemoryMB: guestMemory, Image: img,
			Files: map[string]string{guestProgram: o.Program}})
		if err != nil {
			return err
		}
		r.guests = append(r.guests, &guest{a, g, addr})
		if _, err := r.lab.Agent(host).Connect(ctx, api.Connect{Port: spec.Port{Name: a.name, Switch: "lab",
			PortGroup: "web", Device: tap, MAC: mac.String()}}); err != nil {
			return fmt.Errorf("connect %s: %w", a.name, err)
		}
	}
	for _, g := range r.guests {
		o.Progress("waiting for guest " + g.name)
		if err := g.Ready(ctx); err != nil {
			return err
		}
		// Its standard input is one that never ends while the guest runs.
		if _, err := g.do(ctx, "sleep 1000000 | "+guestProgram+
			" traffic sink --kind stream --listen %s > /tmp/sink 2>&1 & "+
			"until [ -s /tmp/sink ]; do usleep 20000; done", netip.AddrPortFrom(g.addr, sinkPort)); err != nil {
			return err
		}
	}
	return nil
}

// do runs a shell command in the guest; one that fails is an error.
func (g *guest) do(ctx context.Context, format string, args ...any) (string, error) {
	res, err := g.Run(ctx, fmt.Sprintf(format, args...))
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("guest %s: exit status %d: %s", g.name, res.ExitCode, strings.TrimSpace(res.Stderr))
	}
	return res.Stdout, err
}

// close ends everything.
func (r *rig) close() error {
	var errs []error
	for _, g := range r.guests {
		errs = append(errs, g.Stop())
	}
	if r.sink != nil {
		_, err := r.sink.Finish()
		errs = append(errs, err)
	}
	return errors.Join(append(errs, r.lab.Down())...)
}
