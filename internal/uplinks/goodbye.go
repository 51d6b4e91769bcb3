package uplinks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/uplinks/lacp"
	"heddle/internal/uplinks/lldp"
	"heddle/internal/uplinks/memory"
	"heddle/internal/uplinks/wire"
)

// Find finds the device of an uplink; false if it is gone or has been replaced by another.
type Find func(uplink plan.PortID) (d hostdev.Device, ok bool, err error)

// SayGoodbye announces to the neighbours that this host leaves, on behalf of an agent that no longer runs: LACP
// partners stop sending at once instead of after their timeout, and LLDP neighbours remove the host.
func SayGoodbye(find Find, m *memory.Memory) error {
	var errs []error
	for _, g := range m.LAGs {
		for _, f := range LAGGoodbye(g) {
			errs = append(errs, sendOnce(find, plan.PortID{Switch: g.ID.Switch, Name: f.Member}, lacp.EtherType,
				lacp.Destination, f.Payload))
		}
	}
	for _, s := range m.LLDP {
		bye, err := lldp.PDU{Chassis: s.Chassis, Port: s.Port}.Encode()
		if err == nil {
			err = sendOnce(find, s.ID, lldp.EtherType, lldp.Groups[0], bye)
		}
		errs = append(errs, err)
	}
	m.LAGs, m.LLDP = nil, nil
	return errors.Join(errs...)
}

// LAGGoodbye returns the last PDUs of a LAG's members.
func LAGGoodbye(g memory.LAG) []lacp.Frame {
	c := lacp.Config{System: g.Snapshot.System, Key: g.Snapshot.Key}
	for _, m := range g.Snapshot.Members {
		c.Members = append(c.Members, lacp.Member{Name: m.Name, Port: m.Port})
		c.Active = c.Active || m.Actor&lacp.Activity != 0
		c.Fast = c.Fast || m.Actor&lacp.ShortTimeout != 0
	}
	l := lacp.New(c)
	l.Restore(time.Now(), g.Snapshot)
	return l.Goodbye()
}

// sendOnce sends one frame on an uplink's device. A device that is gone or down has no neighbour to send to.
func sendOnce(find Find, id plan.PortID, etherType uint16, to plan.MAC, payload []byte) error {
	d, ok, err := find(id)
	if err != nil || !ok || !d.AdminUp {
		return err
	}
	frame := append(append([]byte{}, to[:]...), d.MAC[:]...)
	err = transmit(d, append(binary.BigEndian.AppendUint16(frame, etherType), payload...))
	if err != nil && !errors.Is(err, unix.ENETDOWN) && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("say goodbye on uplink %s: %w", id, err)
	}
	return nil
}

func transmit(d hostdev.Device, frame []byte) error {
	c, err := wire.Open(d.Index, wire.Listen{})
	if err != nil {
		return err
	}
	return errors.Join(c.Send(frame), c.Close())
}
