package uplinks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/agent/state"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/uplinks/lacp"
	"heddle/internal/uplinks/lldp"
	"heddle/internal/uplinks/wire"
)

// Devices finds a device by its index.
type Devices interface {
	DeviceAt(index uint32) (hostdev.Device, bool, error)
}

// SayGoodbye tells the neighbours that this host leaves, in place of an agent that runs no more: LACP partners stop sending at
// once instead of after their timeout, and LLDP neighbours forget it.
func SayGoodbye(dev Devices, st *state.State) error {
	var errs []error
	for _, g := range st.LAGs {
		for _, f := range LAGGoodbye(g) {
			errs = append(errs, sendOnce(dev, st, plan.PortID{Switch: g.ID.Switch, Name: f.Member}, lacp.EtherType, lacp.Destination, f.Payload))
		}
	}
	for _, s := range st.LLDP {
		bye, err := lldp.PDU{Chassis: s.Chassis, Port: s.Port}.Encode()
		if err == nil {
			err = sendOnce(dev, st, s.ID, lldp.EtherType, lldp.Groups[0], bye)
		}
		errs = append(errs, err)
	}
	st.LAGs, st.LLDP = nil, nil
	return errors.Join(errs...)
}

// LAGGoodbye are the last PDUs of a LAG's members.
func LAGGoodbye(g state.LAG) []lacp.Frame {
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

// sendOnce sends one frame on an uplink's device. A device that is gone or down has nobody to tell.
func sendOnce(dev Devices, st *state.State, id plan.PortID, etherType uint16, to plan.MAC, payload []byte) error {
	h := st.Of(id)
	if h == nil {
		return nil
	}
	d, ok, err := dev.DeviceAt(h.Index)
	if err != nil || !ok || !h.Is(d) || !d.AdminUp {
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
