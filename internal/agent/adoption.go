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
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// adoptions are the host ports that took the place of an uplink's device (S81).
type adoptions struct {
	journal *adopt.Journal
	net     hostnet.Net
	last    []api.Adoption // those that ended since the agent started, the last one last
	trial   trial          // of the journal's change
}

// keptAdoptions is how many ended adoptions can be asked about.
const keptAdoptions = 16

// resumeAdoptions takes up what an agent that ran before left, before the plan is made. A move that was under way is undone; one that
// waits goes on waiting, by its own clock.
func (a *Agent) resumeAdoptions() (err error) {
	a.adoptions.journal, err = adopt.OpenJournal(a.store.Dir())
	if err != nil {
		return err
	}
	here, err := instance.Place()
	if err != nil {
		return err
	}
	for _, r := range slices.Clone(a.adoptions.journal.Records) {
		switch {
		case r.Place != here:
			r.Reason = "the machine has started again: its addresses are where its own network configuration puts them"
			a.dropRunTime(r.Port.Name)
			err = errors.Join(err, a.store.Save(a.state), a.endAdoption(r, event.Reverted))
		case r.Phase == adopt.Moving, r.Phase == adopt.Reverting:
			if r.Reason == "" {
				r.Reason = "the agent ended during the move"
			}
			a.takeBack(r)
		}
	}
	a.keepAdopted()
	return errors.Join(err, a.resumeChange(here))
}

// keepAdopted has every adopted port be there: declared by the file, or else by command.
func (a *Agent) keepAdopted() { a.state.Ports = a.portsBeside(a.file) }

// portsBeside are the ports made by command, when the file is in force. What was adopted stays until it is released: one that the file
// declares is the file's, and a file that no longer declares it does not cut the host off.
func (a *Agent) portsBeside(file *spec.Config) []spec.Port {
	ports := a.state.Ports
	if a.adoptions.journal == nil {
		return ports
	}
	for _, r := range a.adoptions.journal.Records {
		same := func(p spec.Port) bool { return p.Name == r.Port.Name }
		i := slices.IndexFunc(file.Ports, same)
		switch {
		case r.Phase != adopt.Confirmed:
		case i >= 0 && takesOver(file.Ports[i], r.Port):
			ports = slices.DeleteFunc(slices.Clone(ports), same)
		case i < 0 && !slices.ContainsFunc(ports, same):
			ports = append(slices.Clip(ports), r.Port)
		}
	}
	return ports
}

// takesOver says whether the declared port is the adopted one: another MAC or interface would cut the host off.
func takesOver(declared, adopted spec.Port) bool {
	mac, err := plan.ParseMAC(declared.MAC)
	return err == nil && mac.String() == adopted.MAC && declared.Role == spec.Host && declared.Switch == adopted.Switch && deviceOf(declared) == adopted.Device
}

func deviceOf(p spec.Port) string {
	if p.Device == "" {
		return p.Name
	}
	return p.Device
}

func (a *Agent) dropRunTime(name string) {
	a.state.Ports = slices.DeleteFunc(slices.Clone(a.state.Ports), func(p spec.Port) bool { return p.Name == name })
}

// adopted is the record of the port, nil for a port that adopted nothing.
func (a *Agent) adopted(name string) *adopt.Record {
	if a.adoptions.journal == nil {
		return nil
	}
	for _, r := range a.adoptions.journal.Records {
		if r.Port.Name == name {
			return r
		}
	}
	return nil
}

// cutsOff is the error for a command that would take the host off its network (S81): its own addresses are at the port.
func (a *Agent) cutsOff(name string) error {
	r := a.adopted(name)
	if r == nil {
		return nil
	}
	return api.NewError(api.Invalid, fmt.Sprintf("port %s has the addresses that this host had on %s, and would be cut off: move them back first (heddle host-port release %s)", name, r.Config.Device, name))
}

// watchAdoptions asks gateways and the clock, and takes back what has to be; with the agent's every tick.
func (a *Agent) watchAdoptions() {
	if a.adoptions.journal == nil {
		return
	}
	r := a.adoptions.journal.Open()
	if r == nil {
		return
	}
	switch r.Phase {
	case adopt.Reverting:
		a.takeBack(r)
		return
	case adopt.Released:
		a.watchRelease(r)
		return
	}
	a.askGateways(r)
	now, err := hostnet.Boottime()
	if err != nil {
		a.complain("watch the adoption of "+r.Config.Device, err)
		return
	}
	switch verdict, why := r.Judge(now); verdict {
	case adopt.Revert:
		r.Reason = why
		a.takeBack(r)
	case adopt.Keep:
		r.Phase = adopt.Confirmed
		if err := a.adoptions.journal.Save(); err != nil {
			r.Phase = adopt.Waiting
			a.complain("confirm the adoption of "+r.Config.Device, err)
			return
		}
		a.publishAdoption(event.Confirmed, r, fmt.Sprintf("host port %s keeps what device %s had", r.Port.Name, r.Config.Device))
	}
}

// askGateways asks those that have yet to answer, by the interface, or by the device when it was released.
func (a *Agent) askGateways(r *adopt.Record) {
	by := r.Port.Device
	if r.Phase == adopt.Released {
		by = r.Config.Device
	}
	d, ok, err := a.dev.Device(by)
	if err != nil || !ok {
		return // its gateway does not answer
	}
	for _, g := range r.Missing() {
		answered, err := a.adoptions.net.Answers(d.Index, g)
		if err != nil {
			a.log.Warn("ask a gateway", "gateway", g.String(), "err", err)
		}
		if answered {
			r.Answered = append(r.Answered, g)
			a.log.Info("gateway reached", "port", r.Port.Name, "by", by, "gateway", g.String())
			if err := a.adoptions.journal.Save(); err != nil { // it is asked again after a crash
				a.complain("remember that the gateway answered", err)
			}
		}
	}
}

// takeBack undoes a move as far as it goes and forgets it; what is left is tried again with the next tick.
func (a *Agent) takeBack(r *adopt.Record) {
	if a.undo(r) {
		a.forget(r)
	}
}

// undo undoes a move as far as it goes, and says whether that is to the end.
func (a *Agent) undo(r *adopt.Record) bool {
	done, err := adopt.Back(r, a.adoptions.journal.Save, a.mover())
	if err != nil {
		a.complain("move the host's addresses back to device "+r.Config.Device, err)
		if done {
			r.Reason += "; not all went back: " + err.Error()
		}
	}
	return done
}

// forget forgets a move that is undone.
func (a *Agent) forget(r *adopt.Record) {
	if err := a.endAdoption(r, event.Reverted); err != nil {
		a.complain("forget the adoption of "+r.Config.Device, err)
	}
}

// endAdoption forgets a record that is of no more use, and says so.
func (a *Agent) endAdoption(r *adopt.Record, kind event.Kind) error {
	a.adoptions.journal.Remove(r)
	err := a.adoptions.journal.Save()
	out := a.viewAdoption(r)
	out.State = api.AdoptionReverted
	a.adoptions.last = append(a.adoptions.last, out)
	a.adoptions.last = a.adoptions.last[max(0, len(a.adoptions.last)-keptAdoptions):]
	a.publishAdoption(kind, r, fmt.Sprintf("device %s has its addresses and routes again: %s", r.Config.Device, r.Reason))
	return err
}

func (a *Agent) publishAdoption(kind event.Kind, r *adopt.Record, text string) {
	a.log.Info(text, "event", string(kind))
	a.events.Publish(event.Event{Kind: kind, Switch: r.Port.Switch, Port: r.Port.Name, Device: r.Config.Device, Text: text})
}

func portID(r *adopt.Record) plan.PortID {
	return plan.PortID{Switch: r.Port.Switch, Name: r.Port.Name}
}
