package adoption

import (
	"context"
	"errors"
	"fmt"

	"heddle/internal/agent/adopt"
	"heddle/internal/api"
	"heddle/internal/host/hostnet"
	"heddle/internal/observe/event"
	"heddle/internal/observe/undone"
)

// ReleaseAdoption moves the interface's present configuration back to the device. If the adoption had been confirmed,
// the gateway is then asked through the device; without an answer everything moves to the interface again.
func (ad *Part) ReleaseAdoption(ctx context.Context, q api.Release) (out *api.Adoption, err error) {
	return out, ad.host.Loop.Do(ctx, func() error {
		if err := ad.host.Busy(); err != nil {
			return err
		}
		r := ad.adopted(q.Name)
		if r == nil || r.Phase == adopt.Released {
			return ad.noAdoption(q.Name)
		}
		if file, declared := ad.host.File(q.Name); declared {
			return api.NewError(api.Invalid, fmt.Sprintf("port %s is declared in %s: take it out there and apply the "+
				"file; it stays until it is released", q.Name, file))
		}
		if err := readAgain(ad.host.Devices(), ad.net, r); err != nil {
			return fmt.Errorf("nothing was moved: %w", err)
		}
		asks := r.Phase == adopt.Confirmed && len(r.Gateways) > 0 && !q.Force
		r.Reason = undone.Of(undone.Released)
		done := ad.undo(r)
		if !done {
			return fmt.Errorf("host port %s keeps what could not be moved; it is tried again every second: %s", q.Name,
				ad.host.Complaint())
		}
		if asks {
			asks = ad.askByDevice(r)
		}
		v := ad.viewAdoption(r)
		if !asks {
			ad.forget(r)
			v.State = api.AdoptionReverted
		}
		out = &v
		return nil
	})
}

// askByDevice begins to ask the gateways through the device, which has its addresses again. It returns false if the
// answer cannot be awaited.
func (ad *Part) askByDevice(r *adopt.Record) bool {
	now, err := hostnet.Boottime()
	if err == nil {
		r.Phase, r.Answered, r.MovedAt = adopt.Released, nil, now
		err = ad.host.Journal().Save()
	}
	if err != nil {
		ad.host.Complain("ask the gateway by device "+r.Config.Device, err)
		return false
	}
	ad.askGateways(r)
	return true
}

// watchRelease asks the gateways, checks the deadline, and decides whether the device keeps the addresses that it got
// back.
func (ad *Part) watchRelease(r *adopt.Record) {
	ad.askGateways(r)
	now, err := hostnet.Boottime()
	if err != nil {
		ad.host.Complain("watch the release of "+r.Port.Name, err)
		return
	}
	switch verdict, why := r.JudgeRelease(now); verdict {
	case adopt.Keep:
		ad.forget(r)
	case adopt.Revert:
		ad.moveAgain(r, why)
	}
}

// moveAgain moves everything from the device to the host port once more, because the gateway was reachable there.
func (ad *Part) moveAgain(r *adopt.Record, why undone.Reason) {
	if d, ok, err := ad.host.Devices().Device(r.Config.Device); err == nil && ok && d.Index == r.Config.Index {
		if now, err := ad.net.Read(d.Name, d.Index); err == nil {
			r.Config = now
		}
	}
	r.Phase, r.Step, r.Reason = adopt.Moving, 0, why
	err := adopt.Forward(r, ad.host.Journal().Save, ad.mover())
	if err != nil {
		ad.host.Complain("move the host's addresses to host port "+r.Port.Name+" again", err)
		r.Reason.Code, r.Reason.Port, r.Reason.Detail = undone.ReleaseFailed, r.Port.Name, err.Error()
		ad.takeBack(r)
		return
	}
	r.Phase = adopt.Confirmed
	if err := ad.host.Journal().Save(); err != nil {
		ad.host.Complain("keep the adoption of "+r.Config.Device, err)
	}
	ad.publishAdoption(event.Adopted, r, fmt.Sprintf("host port %s has taken the place of device %s again: %s",
		r.Port.Name, r.Config.Device, why.Text()))
}

// readAgain updates the record with the interface's present configuration: leases and router advertisements may have
// changed it. The record describes it as the device's, to which it will be moved.
func readAgain(dev Devices, net hostnet.Net, r *adopt.Record) error {
	if r.Phase != adopt.Confirmed {
		return nil // what was there is restored exactly
	}
	host, ok, err := dev.Device(r.Port.Device)
	if err != nil || !ok {
		return errors.Join(err, fmt.Errorf("interface %s has gone", r.Port.Device))
	}
	now, err := net.Read(host.Name, host.Index)
	if err != nil {
		return err
	}
	r.Config = now.For(r.Config.Device, r.Config.Index)
	return nil
}
