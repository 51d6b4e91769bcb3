package tunnels

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"

	"heddle/internal/agent/active"
	"heddle/internal/agent/devices"
	"heddle/internal/agent/loop"
	"heddle/internal/binding"
	"heddle/internal/host/hostdev"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Devices is the part of the host's devices that tunnels need.
type Devices interface {
	Device(name string) (hostdev.Device, bool, error)
	WithAlias(prefix string) []hostdev.Device
	CreateTunnel(hostdev.Tunnel) error
	Delete(hostdev.Device) error
	SetUp(d hostdev.Device, up bool) error
	SetName(d hostdev.Device, name string) error
	SetIPv6(d hostdev.Device, on bool) error
	Holder(netip.Addr) (hostdev.Device, bool, error)
	Addresses(d hostdev.Device) ([]netip.Prefix, error)
}

// Host is what tunnels need of their host.
type Host struct {
	active.Reader
	Loop *loop.Loop
	// Agent is the agent's name, by which its devices are known.
	Agent   string
	Devices func() Devices
	// Reach is what this host knows of the endpoints of others, for one switch.
	Reach func(*plan.Switch) overlay.Reach
}

// Tunnels are the ways of switches to overlay segments of other hosts. Only the agent's loop uses them, unless a method
// says otherwise.
type Tunnels struct {
	host Host
	// plan is the one whose tunnels are bound.
	plan *plan.Plan
	// prefer puts endpoints last that do not answer; nil for an agent that does not probe.
	prefer func(sw string, r overlay.Reach) overlay.Reach
}

// New returns the tunnels of an agent.
func New(h Host) *Tunnels { return &Tunnels{host: h} }

// Prefer has endpoints put last that do not answer. It is called before the loop runs.
func (t *Tunnels) Prefer(by func(sw string, r overlay.Reach) overlay.Reach) { t.prefer = by }

// Bind adds the tunnels to the desired state of the kernel. A tunnel that can't serve says why, and its ports have no
// way out.
func (t *Tunnels) Bind(now *active.Draft, d *binding.Desired) {
	t.plan = now.Plan
	for _, sw := range now.Plan.Switches {
		if sw.Tunnel == nil {
			continue
		}
		dev, err := t.device(sw.Tunnel)
		if err != nil {
			now.Report(sw.Tunnel.ID, problem.Failed(problem.DeviceFailed, sw.Tunnel.Device, err))
			continue
		}
		fact, why := t.fact(sw, dev)
		reach := t.host.Reach(sw)
		if t.prefer != nil {
			reach = t.prefer(sw.Name, reach)
		}
		if others := endsApart(sw.Tunnel.Device, fact.Endpoints, &reach); why.None() {
			why = others
		}
		if low := narrow(now.Want.Lengths, sw, fact, &reach); why.None() {
			why = low
		}
		if !why.None() {
			now.Report(sw.Tunnel.ID, why)
		}
		if d.Reach == nil {
			d.Reach = map[string]overlay.Reach{}
		}
		d.Facts[sw.Tunnel.ID] = fact
		d.Attachments[sw.Tunnel.ID] = binding.Attachment{Ifindex: dev.Index}
		d.Reach[sw.Name] = reach
	}
}

// endsApart says what is wrong between this host's ends of a tunnel and those of others, from which it removes its own.
func endsApart(device string, own []netip.Addr, r *overlay.Reach) (why problem.Problem) {
	if err := ownAbroad(own, r); err != nil {
		return problem.Failed(problem.EndpointShared, device, err)
	}
	if err := familyApart(own, *r); err != nil {
		return problem.Failed(problem.NoEndpoint, device, err)
	}
	return why
}

// ownAbroad removes this host's own endpoints from those of others, and says which host claims one.
func ownAbroad(own []netip.Addr, r *overlay.Reach) (err error) {
	for _, e := range r.Endpoints {
		if slices.Contains(own, e.Address) {
			err = errors.Join(err, fmt.Errorf("endpoint address %s is in use by host %s as well: give one of them "+
				"another", e.Address, cmp.Or(e.Host, "of unknown name")))
		}
	}
	if err == nil {
		return nil
	}
	mine := func(a netip.Addr) bool { return slices.Contains(own, a) }
	r.Endpoints = slices.DeleteFunc(slices.Clone(r.Endpoints), func(e overlay.Endpoint) bool { return mine(e.Address) })
	r.Segments = slices.Clone(r.Segments)
	for i, s := range r.Segments {
		r.Segments[i].Members = slices.DeleteFunc(slices.Clone(s.Members), mine)
	}
	return err
}

// device finds or makes a tunnel's device. One with its name that is not ours stays as it is.
func (t *Tunnels) device(tun *plan.Tunnel) (hostdev.Device, error) {
	alias := devices.TunnelAlias(t.host.Agent, tun.ID.Switch)
	dev, there, err := t.host.Devices().Device(tun.Device)
	if err == nil && !there {
		dev, there, err = t.renamed(tun, alias)
	}
	if err != nil {
		return dev, err
	}
	if there && dev.Alias != alias {
		return dev, fmt.Errorf("a device %s exists that this agent did not make: rename or remove it", tun.Device)
	}
	if there && dev.TunnelPort != uint16(tun.Port) {
		if err := t.host.Devices().Delete(dev); err != nil {
			return dev, err
		}
		there = false
	}
	if !there {
		err = t.host.Devices().CreateTunnel(hostdev.Tunnel{Name: tun.Device, Port: uint16(tun.Port), Alias: alias})
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%w: another VXLAN device of this host has UDP port %d; if the tunnel's own was moved "+
				"into another network namespace, move it back or remove it there", err, tun.Port)
		}
		if err != nil {
			return dev, err
		}
	}
	if dev, there, err = t.host.Devices().Device(tun.Device); err != nil || !there {
		return dev, errors.Join(err, errGone(there, tun.Device))
	}
	if dev.AdminUp {
		return dev, nil
	}
	if err := t.host.Devices().SetIPv6(dev, false); err != nil {
		return dev, err
	}
	if err := t.host.Devices().SetUp(dev, true); err != nil {
		return dev, fmt.Errorf("%w; if another program has UDP port %d, give the tunnel another one on all hosts", err,
			tun.Port)
	}
	dev, there, err = t.host.Devices().Device(tun.Device)
	return dev, errors.Join(err, errGone(there, tun.Device))
}

// narrow adds to what is known of other hosts' endpoints how long packets to them may be. It returns the state of the
// tunnel if guests' packets do not fit a path, though they fit this host's device.
func narrow(known map[netip.Addr]int, sw *plan.Switch, own plan.Fact, r *overlay.Reach) (low problem.Problem) {
	r.Endpoints = slices.Clone(r.Endpoints)
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		e.Narrow(known[e.Address])
		want := sw.MTU + headroom(sw, e.Address)
		if e.MTU == 0 || own.MTU < want || want-e.MTU <= low.Want-low.Have {
			continue
		}
		low = problem.Problem{Code: problem.LowMTU, Kind: problem.PathKind, Device: e.Host, Other: e.Address.String(),
			Have: e.MTU, Want: want, Peer: sw.Name}
	}
	return low
}

func errGone(there bool, name string) error {
	if there {
		return nil
	}
	return fmt.Errorf("device %s went away", name)
}

// fact says which of the host's ends of a tunnel can be used, and what fits the underlay.
func (t *Tunnels) fact(sw *plan.Switch, dev hostdev.Device) (f plan.Fact, why problem.Problem) {
	var missing error
	var low problem.Problem
	by := t.choice(sw)
	for _, e := range sw.Tunnel.Endpoints {
		a, under, err := t.endpoint(e, by)
		if err == nil && !under.Up() {
			err = fmt.Errorf("endpoint %s: its device %s is down", e.Name, under.Name)
		}
		if err != nil {
			missing = errors.Join(missing, err)
			continue
		}
		f.Endpoints = append(f.Endpoints, a)
		if f.MTU == 0 || under.MTU < f.MTU {
			f.MTU = under.MTU
		}
		if want := sw.MTU + headroom(sw, a); want-under.MTU > low.Want-low.Have {
			low = problem.Problem{Code: problem.LowMTU, Device: under.Name, Other: e.Name, Have: under.MTU, Want: want,
				Peer: sw.Name, Kind: t.switchOf(under.Name)}
		}
	}
	f.Up = dev.AdminUp && len(f.Endpoints) > 0
	switch {
	case missing != nil:
		why = problem.Failed(problem.NoEndpoint, sw.Tunnel.Device, missing)
	case len(f.Endpoints) == 0:
		why = problem.Failed(problem.NoEndpoint, sw.Tunnel.Device,
			errors.New("the tunnel has no endpoint on this host"))
	default:
		why = low
	}
	return f, why
}

// headroom returns how many bytes a packet of a switch's guests grows in a tunnel from an endpoint, at most.
func headroom(sw *plan.Switch, from netip.Addr) int {
	n := overlay.Headroom(from)
	for _, p := range sw.Ports {
		if p.VNI != 0 && p.Policy.VLAN.V.Mode != plan.VLANNone {
			return n + overlay.TagInside
		}
	}
	return n
}

// choice is by what this host's ends of a tunnel are chosen.
func (t *Tunnels) choice(sw *plan.Switch) endpointChoice {
	by := endpointChoice{far: t.host.Reach(sw).Endpoints}
	if t.host.Active().Applied != nil {
		by.present = t.host.Active().Applied.Facts[sw.Tunnel.ID].Endpoints
	}
	return by
}

// endpoint finds the address of one of the host's ends, and the device that has it.
func (t *Tunnels) endpoint(e plan.TunnelEndpoint, by endpointChoice) (netip.Addr, hostdev.Device, error) {
	name := e.Device
	if e.HostPort != "" {
		p := t.hostPort(e.HostPort)
		if p == nil {
			return netip.Addr{}, hostdev.Device{}, fmt.Errorf("endpoint %s: there is no host port %s", e.Name,
				e.HostPort)
		}
		name = p.Device
	}
	if name == "" {
		dev, ok, err := t.host.Devices().Holder(e.Address)
		if err == nil && !ok {
			err = fmt.Errorf("endpoint %s: no device of this host has the address %s", e.Name, e.Address)
		}
		return e.Address, dev, err
	}
	dev, ok, err := t.host.Devices().Device(name)
	if err == nil && !ok {
		err = fmt.Errorf("endpoint %s: there is no device %s", e.Name, name)
	}
	if err != nil {
		return netip.Addr{}, dev, err
	}
	have, err := t.host.Devices().Addresses(dev)
	if err != nil {
		return netip.Addr{}, dev, err
	}
	if a := endpointAmong(have, e.Address, by); a.IsValid() {
		return a, dev, nil
	}
	return netip.Addr{}, dev, fmt.Errorf("endpoint %s: device %s has no such address", e.Name, name)
}

func (t *Tunnels) hostPort(name string) *plan.Port {
	for _, sw := range t.plan.Switches {
		for _, p := range sw.Ports {
			if p.ID.Name == name {
				return p
			}
		}
	}
	return nil
}

// switchOf names the switch of the host port that a device is; "" for another device.
func (t *Tunnels) switchOf(device string) string {
	for _, sw := range t.plan.Switches {
		for _, p := range sw.Ports {
			if p.Role == spec.Host && p.Device == device {
				return sw.Name
			}
		}
	}
	return ""
}

// Tidy removes the devices of tunnels that the plan does not have any more.
func (t *Tunnels) Tidy() error {
	used := map[string]bool{}
	for _, sw := range t.plan.Switches {
		if sw.Tunnel != nil {
			used[devices.TunnelAlias(t.host.Agent, sw.Name)] = true
		}
	}
	return Remove(t.host.Devices(), t.host.Agent, used)
}

// Remove removes the devices that the agent of that name made for tunnels, except for those in use.
func Remove(dev Devices, agent string, used map[string]bool) error {
	var errs []error
	for _, d := range dev.WithAlias(devices.TunnelAlias(agent, "")) {
		if d.TunnelPort != 0 && !used[d.Alias] {
			errs = append(errs, dev.Delete(d))
		}
	}
	return errors.Join(errs...)
}
