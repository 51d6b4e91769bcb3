package cni

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"

	"heddle/internal/api"
	"heddle/internal/spec"
	"heddle/internal/spec/known"
)

// add connects a container. On an error everything is undone, so that the runtime may try again.
func add(ctx context.Context, a *attachment) (err error) {
	if err := a.check(); err != nil {
		return err
	}
	state, err := a.client().State(ctx)
	if err != nil {
		return explain(err)
	}
	sw, err := a.findSwitch(state)
	if err != nil {
		return err
	}
	mtu, err := a.mtu(sw)
	if err != nil {
		return err
	}
	s, err := openSandbox(a.netns)
	if err != nil {
		return err
	}
	defer s.close()
	if err := a.pair(s, mtu); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
			defer cancel()
			// The first error is returned; the runtime's DEL does what cannot be undone here.
			_ = undo(ctx, a)
		}
	}()
	mac, err := s.up(a.ifname)
	if err != nil {
		return err
	}
	result, err := a.attach(ctx, s, sw.Name, mac)
	if err != nil {
		return err
	}
	a.describe(result, mac.String(), mtu)
	return types.PrintResult(result, a.conf.CNIVersion)
}

// attach connects the port and then asks for addresses: an IPAM plugin may need the port for that, as by DHCP.
func (a *attachment) attach(ctx context.Context, s *sandbox, sw string, mac net.HardwareAddr) (*current.Result,
	error) {
	if err := a.connect(ctx, sw, mac.String()); err != nil {
		return nil, err
	}
	result, err := a.assign(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.configure(s, result); err != nil {
		return nil, err
	}
	// A neighbour that knows the address with another MAC would wait for its own check, which takes up to a minute.
	return result, s.announce(a.ifname, mac, result.IPs)
}

// mtu is that of the container's interface, in bytes. One larger than the switch's would lose frames.
func (a *attachment) mtu(sw api.Switch) (int, error) {
	switch {
	case a.conf.MTU == 0:
		return sw.MTU, nil
	case a.conf.MTU > sw.MTU:
		return 0, types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf("mtu %d is larger than %d, that of switch "+
			"%s", a.conf.MTU, sw.MTU, sw.Name), "leave it out, or raise the switch's")
	}
	return a.conf.MTU, nil
}

// findSwitch finds the switch and checks the port group, before anything is made.
func (a *attachment) findSwitch(state *api.State) (api.Switch, error) {
	i := slices.IndexFunc(state.Switches, func(s api.Switch) bool {
		return s.Name == a.conf.Switch || a.conf.Switch == "" && len(state.Switches) == 1
	})
	if i < 0 {
		if a.conf.Switch == "" && len(state.Switches) > 1 {
			return api.Switch{}, types.NewError(types.ErrInvalidNetworkConfig,
				fmt.Sprintf("this host has %d switches: say which, as \"switch\"", len(state.Switches)),
				"see heddle switch list")
		}
		n := known.Names{What: "switch"}
		for _, s := range state.Switches {
			n.All = append(n.All, s.Name)
		}
		return api.Switch{}, types.NewError(types.ErrInvalidNetworkConfig, n.Missing(a.conf.Switch),
			"see heddle switch list")
	}
	sw := state.Switches[i]
	n := known.Names{What: "port group", Owner: "switch " + sw.Name}
	for _, g := range state.PortGroups {
		if g.Switch != sw.Name {
			continue
		}
		if n.All = append(n.All, g.Name); g.Name == a.conf.PortGroup {
			return sw, nil
		}
	}
	return sw, types.NewError(types.ErrInvalidNetworkConfig, n.Missing(a.conf.PortGroup), "see heddle port-group list")
}

// describe adds the two interfaces to the result.
func (a *attachment) describe(r *current.Result, mac string, mtu int) {
	r.Interfaces = []*current.Interface{
		{Name: a.hostDevice(), Mtu: mtu},
		{Name: a.ifname, Mac: mac, Mtu: mtu, Sandbox: a.netns},
	}
	for _, ip := range r.IPs {
		ip.Interface = current.Int(1)
	}
}

// connect makes the port and waits until frames pass, so that the container's first packet is not lost. The container's
// MAC is the port's.
func (a *attachment) connect(ctx context.Context, sw, mac string) error {
	vm, adapter := a.identity()
	_, err := a.client().Connect(ctx,
		api.Connect{VM: vm, Adapter: adapter, Port: spec.Port{Name: a.port(), Switch: sw, PortGroup: a.conf.PortGroup,
			Device: a.hostDevice(),
			MAC:    mac,
			Owner:  a.owner()}})
	if err != nil {
		return explain(err)
	}
	ctx, cancel := context.WithTimeout(ctx, upTime)
	defer cancel()
	try := time.NewTicker(upCheck)
	defer try.Stop()
	for {
		p, err := a.portState(ctx)
		if err != nil {
			return err
		}
		if p.State == api.Up || p.State == api.Blocked {
			return nil
		}
		select {
		case <-try.C:
		case <-ctx.Done():
			return types.NewError(types.ErrTryAgainLater, fmt.Sprintf("port %s is not up after %s", p.Name, upTime),
				p.Reason)
		}
	}
}

func (a *attachment) portState(ctx context.Context) (api.Port, error) {
	state, err := a.client().State(ctx)
	if err != nil {
		return api.Port{}, explain(err)
	}
	i := slices.IndexFunc(state.Ports, func(p api.Port) bool { return p.Name == a.port() })
	if i < 0 {
		return api.Port{}, types.NewError(types.ErrUnknownContainer, fmt.Sprintf("there is no port %s", a.port()),
			"it was disconnected by somebody else")
	}
	return state.Ports[i], nil
}
