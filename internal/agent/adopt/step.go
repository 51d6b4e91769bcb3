package adopt

import (
	"errors"
	"fmt"
)

// Op is one operation on the host. Every Op may be repeated after it was done, whole or in part.
type Op string

// The steps of a move, in order, and their inverses. At every instant the host has its addresses, and routes through a
// device that works.
const (
	// MakePair makes the host port's interface with the device's MAC, up but not connected.
	MakePair   Op = "make the interface"
	RemovePair Op = "remove the interface"
	// GiveAddresses adds the addresses to the interface; the device keeps them too.
	GiveAddresses Op = "give it the addresses"
	TakeAddresses Op = "take the addresses from it"
	// Connect makes the interface a port: from here on, frames for the MAC reach it.
	Connect    Op = "connect the port"
	Disconnect Op = "disconnect the port"
	// GiveRoutes adds routes, neighbours and policy rules to the interface; the device keeps them too.
	GiveRoutes Op = "give it routes, neighbours and policy rules"
	TakeRoutes Op = "take routes, neighbours and policy rules from it"
	// Quiet makes the device's own stack ignore the network traffic that is now for the interface.
	Quiet Op = "quiet the device"
	Wake  Op = "wake the device"
	// Empty removes everything from the device: from here on, what the host sends leaves by the interface.
	Empty  Op = "empty the device"
	Refill Op = "put everything back on the device"
	// Settle gives the interface the device's kernel parameters, which were loose during the move.
	Settle Op = "settle the interface"
	Loosen Op = "loosen the interface"
)

// step is an Op and its inverse.
type step struct{ do, undo Op }

func steps() []step {
	return []step{{MakePair, RemovePair}, {GiveAddresses, TakeAddresses}, {Connect, Disconnect},
		{GiveRoutes, TakeRoutes}, {Quiet, Wake}, {Empty, Refill}, {Settle, Loosen}}
}

// ErrStop wraps an error after which it is unsafe to continue undoing: the rest is tried again later.
var ErrStop = errors.New("not undone further for now")

// Host carries out a step.
type Host interface {
	Do(op Op, r *Record) error
}

// Forward does the remaining steps. It calls save before it begins each step, so that after a crash the record shows
// what may have been done. After an error call Back with the record.
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

// Back undoes the steps that may have been done, the last first. A step that cannot be undone does not stop the others,
// unless the error is an ErrStop: then the record is unchanged and Back must be called again. Done reports whether all
// steps were undone.
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
