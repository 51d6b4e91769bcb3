package agent

import (
	"errors"
	"fmt"
	"slices"

	"heddle/internal/agent/adopt"
	"heddle/internal/agent/instance"
	"heddle/internal/api"
	"heddle/internal/host/hostnet"
	"heddle/internal/observe/event"
	"heddle/internal/observe/undone"
	"heddle/internal/plan"
)

// adoptions are the host ports that took the place of an uplink's device (S81).
type adoptions struct {
	*shared
	ports     *ports
	records   *records
	attaching *attaching
	holding   *holding
	trials    *trials
	changer   *changer
	answers   *answers

	last []api.Adoption // those that ended since the agent started, oldest first
}

// keptAdoptions is how many ended adoptions are kept for queries.
const keptAdoptions = 16

// resumeAdoptions continues the moves that an earlier agent left, before the plan is made. A move that was in progress
// is undone; a move that waits continues to wait until its own deadline.
func (ad *adoptions) resumeAdoptions() (err error) {
	if err := ad.records.open(); err != nil {
		return err
	}
	here, err := instance.Place()
	if err != nil {
		return err
	}
	for _, r := range slices.Clone(ad.records.journal.Records) {
		switch {
		case r.Place != here:
			r.Reason = undone.Reason{Code: undone.Restarted,
				Detail: "its addresses are where its own network configuration puts them"}
			ad.ports.dropRunTime(r.Port.Name)
			err = errors.Join(err, ad.store.Save(ad.state), ad.endAdoption(r, event.Reverted))
		case r.Phase == adopt.Moving, r.Phase == adopt.Reverting:
			if r.Reason.None() {
				r.Reason = undone.Of(undone.Interrupted)
			}
			ad.takeBack(r)
		}
	}
	ad.records.keepAdopted()
	return errors.Join(err, ad.trials.resumeChange(here))
}

// watchAdoptions asks the gateways, checks the deadlines and undoes what must be undone. It runs on every tick of the
// agent.
func (ad *adoptions) watchAdoptions() {
	if ad.records.journal == nil {
		return
	}
	r := ad.records.journal.Open()
	if r == nil {
		return
	}
	switch r.Phase {
	case adopt.Reverting:
		ad.takeBack(r)
		return
	case adopt.Released:
		ad.watchRelease(r)
		return
	}
	ad.askGateways(r)
	now, err := hostnet.Boottime()
	if err != nil {
		ad.Complain("watch the adoption of "+r.Config.Device, err)
		return
	}
	switch verdict, why := r.Judge(now); verdict {
	case adopt.Revert:
		r.Reason = why
		ad.takeBack(r)
	case adopt.Keep:
		r.Phase = adopt.Confirmed
		if err := ad.records.journal.Save(); err != nil {
			r.Phase = adopt.Waiting
			ad.Complain("confirm the adoption of "+r.Config.Device, err)
			return
		}
		ad.publishAdoption(event.Confirmed, r, fmt.Sprintf("host port %s keeps what device %s had", r.Port.Name,
			r.Config.Device))
	}
}

// askGateways asks the gateways that have not answered, through the interface, or through the device if the move was
// released.
func (ad *adoptions) askGateways(r *adopt.Record) {
	by := r.Port.Device
	if r.Phase == adopt.Released {
		by = r.Config.Device
	}
	d, ok, err := ad.dev.Device(by)
	if err != nil || !ok {
		return // its gateway does not answer
	}
	for _, g := range r.Missing() {
		answered, err := ad.records.net.Answers(d.Index, g)
		if err != nil {
			ad.log.Warn("ask a gateway", "gateway", g.String(), "err", err)
		}
		if answered {
			r.Answered = append(r.Answered, g)
			ad.log.Info("gateway reached", "port", r.Port.Name, "by", by, "gateway", g.String())
			if err := ad.records.journal.Save(); err != nil { // it is asked again after a crash
				ad.Complain("remember that the gateway answered", err)
			}
		}
	}
}

// takeBack undoes a move as far as possible and removes its record; the rest is tried again on the next tick.
func (ad *adoptions) takeBack(r *adopt.Record) {
	if ad.undo(r) {
		ad.forget(r)
	}
}

// undo undoes a move as far as possible, and reports whether all of it is undone.
func (ad *adoptions) undo(r *adopt.Record) bool {
	done, err := adopt.Back(r, ad.records.journal.Save, ad.mover())
	if err != nil {
		ad.Complain("move the host's addresses back to device "+r.Config.Device, err)
		if done {
			r.Reason.Left = err.Error()
		}
	}
	return done
}

// forget removes the record of a move that is undone.
func (ad *adoptions) forget(r *adopt.Record) {
	if err := ad.endAdoption(r, event.Reverted); err != nil {
		ad.Complain("forget the adoption of "+r.Config.Device, err)
	}
}

// endAdoption removes a record that is no longer needed, and publishes an event.
func (ad *adoptions) endAdoption(r *adopt.Record, kind event.Kind) error {
	ad.records.journal.Remove(r)
	err := ad.records.journal.Save()
	out := ad.viewAdoption(r)
	out.State = api.AdoptionReverted
	ad.last = append(ad.last, out)
	ad.last = ad.last[max(0, len(ad.last)-keptAdoptions):]
	ad.publishAdoption(kind, r, fmt.Sprintf("device %s has its addresses and routes again: %s", r.Config.Device,
		r.Reason.Text()))
	return err
}

func (ad *adoptions) publishAdoption(kind event.Kind, r *adopt.Record, text string) {
	ad.log.Info(text, "event", string(kind))
	ad.events.Publish(event.Event{Kind: kind, Switch: r.Port.Switch, Port: r.Port.Name, Device: r.Config.Device,
		Text: text})
}

func portID(r *adopt.Record) plan.PortID {
	return plan.PortID{Switch: r.Port.Switch, Name: r.Port.Name}
}
