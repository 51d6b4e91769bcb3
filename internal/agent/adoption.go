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
	*shared
	ports     *ports
	records   *records
	effect    *effect
	attaching *attaching
	holding   *holding
	trials    *trials
	changer   *changer
	answers   *answers

	last []api.Adoption // those that ended since the agent started, the last one last
}

// records are what the next agent has to know of moves of the host's own addresses, and of the change that is tried.
type records struct {
	*shared
	ports *ports

	journal *adopt.Journal // nil before it is read
	net     hostnet.Net
}

// keptAdoptions is how many ended adoptions can be asked about.
const keptAdoptions = 16

// resumeAdoptions takes up what an agent that ran before left, before the plan is made. A move that was under way is undone; one that
// waits goes on waiting, by its own clock.
func (ad *adoptions) resumeAdoptions() (err error) {
	ad.records.journal, err = adopt.OpenJournal(ad.store.Dir())
	if err != nil {
		return err
	}
	here, err := instance.Place()
	if err != nil {
		return err
	}
	for _, r := range slices.Clone(ad.records.journal.Records) {
		switch {
		case r.Place != here:
			r.Reason = "the machine has started again: its addresses are where its own network configuration puts them"
			ad.ports.dropRunTime(r.Port.Name)
			err = errors.Join(err, ad.store.Save(ad.state), ad.endAdoption(r, event.Reverted))
		case r.Phase == adopt.Moving, r.Phase == adopt.Reverting:
			if r.Reason == "" {
				r.Reason = "the agent ended during the move"
			}
			ad.takeBack(r)
		}
	}
	ad.records.keepAdopted()
	return errors.Join(err, ad.trials.resumeChange(here))
}

// keepAdopted has every adopted port be there: declared by the file, or else by command.
func (rs *records) keepAdopted() { rs.state.Ports = rs.portsBeside(rs.ports.file) }

// portsBeside are the ports made by command, when the file is in force. What was adopted stays until it is released: one that the file
// declares is the file's, and a file that no longer declares it does not cut the host off.
func (rs *records) portsBeside(file *spec.Config) []spec.Port {
	ports := rs.state.Ports
	if rs.journal == nil {
		return ports
	}
	for _, r := range rs.journal.Records {
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

func (ps *ports) dropRunTime(name string) {
	ps.state.Ports = slices.DeleteFunc(slices.Clone(ps.state.Ports), func(p spec.Port) bool { return p.Name == name })
}

// adopted is the record of the port, nil for a port that adopted nothing.
func (rs *records) adopted(name string) *adopt.Record {
	if rs.journal == nil {
		return nil
	}
	for _, r := range rs.journal.Records {
		if r.Port.Name == name {
			return r
		}
	}
	return nil
}

// cutsOff is the error for a command that would take the host off its network (S81): its own addresses are at the port.
func (rs *records) cutsOff(name string) error {
	r := rs.adopted(name)
	if r == nil {
		return nil
	}
	return api.NewError(api.Invalid, fmt.Sprintf("port %s has the addresses that this host had on %s, and would be cut off: move them back first (heddle host-port release %s)", name, r.Config.Device, name))
}

// watchAdoptions asks gateways and the clock, and takes back what has to be; with the agent's every tick.
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
		ad.complain("watch the adoption of "+r.Config.Device, err)
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
			ad.complain("confirm the adoption of "+r.Config.Device, err)
			return
		}
		ad.publishAdoption(event.Confirmed, r, fmt.Sprintf("host port %s keeps what device %s had", r.Port.Name, r.Config.Device))
	}
}

// askGateways asks those that have yet to answer, by the interface, or by the device when it was released.
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
				ad.complain("remember that the gateway answered", err)
			}
		}
	}
}

// takeBack undoes a move as far as it goes and forgets it; what is left is tried again with the next tick.
func (ad *adoptions) takeBack(r *adopt.Record) {
	if ad.undo(r) {
		ad.forget(r)
	}
}

// undo undoes a move as far as it goes, and says whether that is to the end.
func (ad *adoptions) undo(r *adopt.Record) bool {
	done, err := adopt.Back(r, ad.records.journal.Save, ad.mover())
	if err != nil {
		ad.complain("move the host's addresses back to device "+r.Config.Device, err)
		if done {
			r.Reason += "; not all went back: " + err.Error()
		}
	}
	return done
}

// forget forgets a move that is undone.
func (ad *adoptions) forget(r *adopt.Record) {
	if err := ad.endAdoption(r, event.Reverted); err != nil {
		ad.complain("forget the adoption of "+r.Config.Device, err)
	}
}

// endAdoption forgets a record that is of no more use, and says so.
func (ad *adoptions) endAdoption(r *adopt.Record, kind event.Kind) error {
	ad.records.journal.Remove(r)
	err := ad.records.journal.Save()
	out := ad.viewAdoption(r)
	out.State = api.AdoptionReverted
	ad.last = append(ad.last, out)
	ad.last = ad.last[max(0, len(ad.last)-keptAdoptions):]
	ad.publishAdoption(kind, r, fmt.Sprintf("device %s has its addresses and routes again: %s", r.Config.Device, r.Reason))
	return err
}

func (ad *adoptions) publishAdoption(kind event.Kind, r *adopt.Record, text string) {
	ad.log.Info(text, "event", string(kind))
	ad.events.Publish(event.Event{Kind: kind, Switch: r.Port.Switch, Port: r.Port.Name, Device: r.Config.Device, Text: text})
}

func portID(r *adopt.Record) plan.PortID {
	return plan.PortID{Switch: r.Port.Switch, Name: r.Port.Name}
}
