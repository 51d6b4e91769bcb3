package adoption

import (
	"errors"
	"fmt"

	"heddle/internal/agent/adopt"
	"heddle/internal/agent/devices"
	"heddle/internal/host/hostdev"
	"heddle/internal/host/hostnet"
	"heddle/internal/plan"
)

// mover carries out the steps of an adoption on the host.
type mover struct {
	agent string // its name
	dev   Devices
	net   hostnet.Net
	// connect makes the port, disconnect removes it.
	connect, disconnect func(*adopt.Record) error
	// make makes the interface; nil if there is nothing to make.
	make func(plan.PortID, hostdev.Pair) error
	// keep leaves the interface and its addresses for the next agent.
	keep bool
}

func (ad *Part) mover() *mover {
	return &mover{agent: ad.host.Agent, dev: ad.host.Devices(), net: ad.net, connect: ad.host.Connect,
		disconnect: ad.host.Disconnect, make: ad.host.MakePair}
}

// Do does one step; a step that undoes does nothing if there is nothing to undo.
func (m *mover) Do(op adopt.Op, r *adopt.Record) error {
	switch op {
	case adopt.MakePair:
		return m.makePair(r)
	case adopt.Connect:
		return m.connect(r)
	case adopt.Disconnect:
		return m.disconnect(r)
	case adopt.Quiet, adopt.Empty, adopt.Refill, adopt.Wake:
		return m.onDevice(op, r)
	}
	if m.keep && (op == adopt.TakeAddresses || op == adopt.RemovePair) {
		return nil
	}
	host, ok, err := m.dev.Device(r.Port.Device)
	switch {
	case err != nil:
		return err
	case !ok && (op == adopt.GiveAddresses || op == adopt.GiveRoutes || op == adopt.Settle):
		return fmt.Errorf("interface %s has gone", r.Port.Device)
	case !ok || !m.ours(host, r):
		return nil
	}
	return m.onInterface(op, r, host)
}

// ours reports whether the interface is the one that was made: an operator may have made another of the same name
// since. A pair with both names but without a mark was left by a crash between making and marking it: before the move
// nothing had these names.
func (m *mover) ours(d hostdev.Device, r *adopt.Record) bool {
	if d.Alias != "" {
		return d.Alias == devices.Alias(m.agent, portID(r))
	}
	end, ok, err := m.dev.Device(devices.SwitchEnd(r.Port.Device))
	return err == nil && ok && end.Peer.Index == d.Index && !end.Peer.Elsewhere
}

func (m *mover) onInterface(op adopt.Op, r *adopt.Record, host hostdev.Device) error {
	switch op {
	case adopt.GiveAddresses:
		return m.net.PutAddresses(r.Config, host.Index, host.Name)
	case adopt.GiveRoutes:
		_ = m.net.CarryNeighbours(r.Config.Index, host.Index) // without them the kernel asks for them again
		return m.net.PutRoutes(r.Config, host.Index, host.Name)
	case adopt.TakeRoutes:
		return m.net.DropRoutes(r.Config, host.Index, host.Name)
	case adopt.TakeAddresses:
		return m.net.DropAddresses(r.Config, host.Index, host.Name)
	case adopt.Settle:
		return m.net.Set(host.Name, r.Settings...)
	case adopt.Loosen:
		return m.net.Set(host.Name, adopt.LooseSettings()...)
	case adopt.RemovePair:
		return m.dev.Delete(host)
	}
	return fmt.Errorf("no such step: %q", op)
}

// onDevice does a step on the device whose addresses move. While the device is missing, undoing stops: the host keeps
// what it has on the interface.
func (m *mover) onDevice(op adopt.Op, r *adopt.Record) error {
	d, ok, err := m.dev.DeviceAt(r.Config.Index)
	if err == nil && (!ok || d.Name != r.Config.Device && d.MAC.String() != r.Port.MAC) {
		// the interface has the device's MAC
		err = fmt.Errorf("device %s is not there any more", r.Config.Device)
		if op == adopt.Refill {
			err = fmt.Errorf("%w: %w", adopt.ErrStop, err)
		}
	}
	if err != nil {
		return err
	}
	switch op {
	case adopt.Quiet:
		return m.net.Set(d.Name, r.QuietSettings()...)
	case adopt.Wake:
		return m.net.Set(d.Name, r.Quieted...)
	case adopt.Empty:
		return m.net.Drop(r.Config, d.Index, d.Name)
	}
	return m.refill(r, d)
}

// refill restores everything on the device. A neighbour entry that is lost costs a second, and is no reason to fail.
func (m *mover) refill(r *adopt.Record, d hostdev.Device) error {
	host, ok, err := m.dev.Device(r.Port.Device)
	if err == nil && ok && m.ours(host, r) {
		_ = m.net.CarryNeighbours(host.Index, d.Index)
	}
	return m.net.Put(r.Config, d.Index, d.Name)
}

// makePair makes the interface that hostInterface finds when the port is connected.
func (m *mover) makePair(r *adopt.Record) error {
	mac, err := plan.ParseMAC(r.Port.MAC)
	if err != nil {
		return err
	}
	p := hostdev.Pair{Host: r.Port.Device, MAC: mac, MTU: r.Port.MTU, Switch: devices.SwitchEnd(r.Port.Device),
		Alias: devices.Alias(m.agent, portID(r))}
	if err := m.make(portID(r), p); err != nil {
		return err
	}
	host, _, err := m.dev.Device(p.Host)
	if err != nil {
		return err
	}
	end, _, err := m.dev.Device(p.Switch)
	if err != nil {
		return err
	}
	if err := errors.Join(m.dev.SetIPv6(end, false), m.net.Set(p.Host, adopt.LooseSettings()...)); err != nil {
		return err
	}
	return errors.Join(m.dev.SetUp(host, true), m.dev.SetUp(end, true))
}
