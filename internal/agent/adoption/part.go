package adoption

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"heddle/internal/agent/active"
	"heddle/internal/agent/adopt"
	"heddle/internal/agent/loop"
	"heddle/internal/agent/view"
	"heddle/internal/api"
	"heddle/internal/host/hostdev"
	"heddle/internal/host/hostnet"
	"heddle/internal/observe/event"
	"heddle/internal/observe/undone"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Devices is the part of the host's devices that adoptions need.
type Devices interface {
	Device(name string) (hostdev.Device, bool, error)
	DeviceAt(index uint32) (hostdev.Device, bool, error)
	Delete(hostdev.Device) error
	SetUp(d hostdev.Device, up bool) error
	SetIPv6(d hostdev.Device, on bool) error
}

// Host is what the part needs of its host. Its functions are called in the loop.
type Host struct {
	active.Reader
	Loop     *loop.Loop
	Log      *slog.Logger
	Events   *event.Bus
	Complain func(what string, err error)
	// Complaint is what was complained of last.
	Complaint func() string
	// Agent is the agent's name, by which its devices are known.
	Agent   string
	Devices func() Devices
	// Journal has the records of the moves; nil before it is read.
	Journal func() *adopt.Journal
	// Busy is the error for a move while a change of the ways to the host's own addresses is on trial.
	Busy func() error
	// File is the configuration file, if a port is declared.
	File func(port string) (file string, declared bool)
	// With is the plan with one more port; or the lines that say why there is none.
	With func(spec.Port) (*plan.Plan, []string, error)
	// Connect makes the port and attaches its device, Disconnect removes it. MakePair makes an interface.
	Connect, Disconnect func(*adopt.Record) error
	MakePair            func(plan.PortID, hostdev.Pair) error
	// Forget removes a port of another boot from what is remembered.
	Forget func(port string) error
	// View has the ports and uplinks as they are shown.
	View func() view.Source
}

// Part is the moves of the host's own addresses to host ports and back. Only the agent's loop uses it, unless a method
// is a command.
type Part struct {
	host Host
	net  hostnet.Net

	last []api.Adoption // those that ended since the agent started, oldest first
}

// New returns the part.
func New(h Host) *Part { return &Part{host: h} }

// keptAdoptions is how many ended adoptions are kept for queries.
const keptAdoptions = 16

// Resume continues the moves that an earlier agent left, before the plan is made; here is this boot and namespace. A
// move that was in progress is undone; a move that waits continues to wait until its own deadline.
func (ad *Part) Resume(here string) (err error) {
	for _, r := range slices.Clone(ad.host.Journal().Records) {
		switch {
		case r.Place != here:
			r.Reason = undone.Reason{Code: undone.Restarted,
				Detail: "its addresses are where its own network configuration puts them"}
			err = errors.Join(err, ad.host.Forget(r.Port.Name), ad.endAdoption(r, event.Reverted))
		case r.Phase == adopt.Moving, r.Phase == adopt.Reverting:
			if r.Reason.None() {
				r.Reason = undone.Of(undone.Interrupted)
			}
			ad.takeBack(r)
		}
	}
	return err
}

// adopted returns the record of the port, nil for a port that adopted nothing.
func (ad *Part) adopted(name string) *adopt.Record {
	if j := ad.host.Journal(); j != nil {
		return j.OfPort(name)
	}
	return nil
}

// portOf finds a port of the plan by name, nil for none.
func portOf(p *plan.Plan, name string) *plan.Port {
	for _, sw := range p.Switches {
		for _, port := range sw.Ports {
			if port.ID.Name == name {
				return port
			}
		}
	}
	return nil
}

// Watch asks the gateways, checks the deadlines and undoes what must be undone. It runs on every tick of the
// agent.
func (ad *Part) Watch() {
	if ad.host.Journal() == nil {
		return
	}
	r := ad.host.Journal().Open()
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
		ad.host.Complain("watch the adoption of "+r.Config.Device, err)
		return
	}
	switch verdict, why := r.Judge(now); verdict {
	case adopt.Revert:
		r.Reason = why
		ad.takeBack(r)
	case adopt.Keep:
		r.Phase = adopt.Confirmed
		if err := ad.host.Journal().Save(); err != nil {
			r.Phase = adopt.Waiting
			ad.host.Complain("confirm the adoption of "+r.Config.Device, err)
			return
		}
		ad.publishAdoption(event.Confirmed, r, fmt.Sprintf("host port %s keeps what device %s had", r.Port.Name,
			r.Config.Device))
	}
}

// askGateways asks the gateways that have not answered, through the interface, or through the device if the move was
// released.
func (ad *Part) askGateways(r *adopt.Record) {
	by := r.Port.Device
	if r.Phase == adopt.Released {
		by = r.Config.Device
	}
	d, ok, err := ad.host.Devices().Device(by)
	if err != nil || !ok {
		return // its gateway does not answer
	}
	for _, g := range r.Missing() {
		answered, err := ad.net.Answers(d.Index, g)
		if err != nil {
			ad.host.Log.Warn("ask a gateway", "gateway", g.String(), "err", err)
		}
		if answered {
			r.Answered = append(r.Answered, g)
			ad.host.Log.Info("gateway reached", "port", r.Port.Name, "by", by, "gateway", g.String())
			if err := ad.host.Journal().Save(); err != nil { // it is asked again after a crash
				ad.host.Complain("remember that the gateway answered", err)
			}
		}
	}
}

// takeBack undoes a move as far as possible and removes its record; the rest is tried again on the next tick.
func (ad *Part) takeBack(r *adopt.Record) {
	if ad.undo(r) {
		ad.forget(r)
	}
}

// undo undoes a move as far as possible, and reports whether all of it is undone.
func (ad *Part) undo(r *adopt.Record) bool {
	done, err := adopt.Back(r, ad.host.Journal().Save, ad.mover())
	if err != nil {
		ad.host.Complain("move the host's addresses back to device "+r.Config.Device, err)
		if done {
			r.Reason.Left = err.Error()
		}
	}
	return done
}

// forget removes the record of a move that is undone.
func (ad *Part) forget(r *adopt.Record) {
	if err := ad.endAdoption(r, event.Reverted); err != nil {
		ad.host.Complain("forget the adoption of "+r.Config.Device, err)
	}
}

// endAdoption removes a record that is no longer needed, and publishes an event.
func (ad *Part) endAdoption(r *adopt.Record, kind event.Kind) error {
	ad.host.Journal().Remove(r)
	err := ad.host.Journal().Save()
	out := ad.viewAdoption(r)
	out.State = api.AdoptionReverted
	ad.last = append(ad.last, out)
	ad.last = ad.last[max(0, len(ad.last)-keptAdoptions):]
	ad.publishAdoption(kind, r, fmt.Sprintf("device %s has its addresses and routes again: %s", r.Config.Device,
		r.Reason.Text()))
	return err
}

func (ad *Part) publishAdoption(kind event.Kind, r *adopt.Record, text string) {
	ad.host.Log.Info(text, "event", string(kind))
	ad.host.Events.Publish(event.Event{Kind: kind, Switch: r.Port.Switch, Port: r.Port.Name, Device: r.Config.Device,
		Text: text})
}

func portID(r *adopt.Record) plan.PortID {
	return plan.PortID{Switch: r.Port.Switch, Name: r.Port.Name}
}
