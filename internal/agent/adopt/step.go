// Package adopt decides which changes that could cut the host off are undone by themselves (S81): it keeps the journal
// that survives a crash, and the rules for undoing a change. Such changes are a move of the host's own addresses from
// an uplink's device to a host port, in steps that each have an inverse, and any change of the configuration that
// concerns the way to those addresses. It decides; a Host does.
package adopt

import (
	"errors"
	"fmt"
)

// Op is one thing to do to the host. Every Op may be done again when it was done already, whole or in part.
type Op string

// The steps of a move, in order, and what undoes each. At every instant the host has its addresses, and routes by a
// device that works.
const (
	// MakePair makes the host port's interface with the device's MAC, up and not connected.
	MakePair   Op = "make the interface"
	RemovePair Op = "remove the interface"
	// GiveAddresses puts the addresses on the interface, beside the device.
	GiveAddresses Op = "give it the addresses"
	TakeAddresses Op = "take the addresses from it"
	// Connect makes it a port: what is sent to the MAC reaches the interface from here on.
	Connect    Op = "connect the port"
	Disconnect Op = "disconnect the port"
	// GiveRoutes puts routes, neighbours and policy rules on the interface, beside the device.
	GiveRoutes Op = "give it routes, neighbours and policy rules"
	TakeRoutes Op = "take routes, neighbours and policy rules from it"
	// Quiet makes the device's own stack ignore the network traffic that is now for the interface.
	Quiet Op = "quiet the device"
	Wake  Op = "wake the device"
	// Empty removes everything from the device: from here on, what the host sends leaves by the interface.
	Empty  Op = "empty the device"
	Refill Op = "put everything back on the device"
	// Settle gives the interface the device's kernel parameters, which were loose for the time of the move.
	Settle Op = "settle the interface"
	Loosen Op = "loosen the interface"
)

// step is an Op and its inverse.
type step struct{ do, undo Op }

func steps() []step {
	return []step{{MakePair, RemovePair}, {GiveAddresses, TakeAddresses}, {Connect, Disconnect},
		{GiveRoutes, TakeRoutes}, {Quiet, Wake}, {Empty, Refill}, {Settle, Loosen}}
}

// ErrStop wraps what makes it unsafe to go on undoing: the rest is tried again later.
var ErrStop = errors.New("not undone further for now")

// Host does what a step says.
type Host interface {
	Do(op Op, r *Record) error
}

// Forward does the remaining steps. Each is written to disk before it is begun, so that after a crash the record
// shows what may have been done. After an error call Back with the record.
func Forward(r *Record, save func() error, h Host) error {
	all := steps()
	for r.Step < len(all) {
		r.Step++
		if err := save(); err != nil {
			return err
		}
		op := all[r.Step-1].do
		if err := h.Do(op, r); err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
	}
	return nil
}

// Back undoes the steps that may have been done, the last first. A step that cannot be undone does not stop the
// others, unless the error is an ErrStop: then the record is unchanged and Back must be called again. Done reports
// whether it went to the end.
func Back(r *Record, save func() error, h Host) (done bool, err error) {
	r.Phase = Reverting
	errs := []error{save()}
	for all := steps(); r.Step > 0; r.Step-- {
		op := all[r.Step-1].undo
		err := h.Do(op, r)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", op, err))
		}
		if errors.Is(err, ErrStop) {
			return false, errors.Join(errs...)
		}
	}
	return true, errors.Join(errs...)
}
