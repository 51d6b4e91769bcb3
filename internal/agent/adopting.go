package agent

import (
	"errors"
	"slices"

	"heddle/internal/agent/adopt"
	"heddle/internal/agent/adoption"
	"heddle/internal/agent/held"
	"heddle/internal/agent/instance"
	"heddle/internal/agent/view"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// adopting is what the agent does for the moves of the host's own addresses.
type adopting struct {
	*shared
	connected *connected
	ports     *ports
	records   *records
	attaching *attaching
	changer   *changer
}

// newAdoption returns the moves of the host's own addresses.
func newAdoption(ag adopting, hd *held.Part, tr *trials, source func() view.Source) *adoption.Part {
	return adoption.New(adoption.Host{Reader: ag.Reader, Loop: ag.Loop, Log: ag.log, Events: ag.events,
		Complain: ag.Complain, Complaint: ag.Complaint, Agent: ag.name, MakePair: hd.MakePair, View: source,
		Devices: func() adoption.Devices { return ag.dev }, Busy: tr.busyForAdoption,
		Journal: func() *adopt.Journal { return ag.records.journal }, With: ag.planWith,
		File: ag.fileOf, Forget: ag.connected.forget, Connect: ag.connect, Disconnect: ag.disconnect})
}

// resumeAdoptions continues the moves that an earlier agent left, before the plan is made.
func (a *Agent) resumeAdoptions() error {
	if err := a.records.open(); err != nil {
		return err
	}
	here, err := instance.Place()
	if err != nil {
		return err
	}
	err = a.adoptions.Resume(here)
	a.records.keepAdopted()
	return errors.Join(err, a.trials.resumeChange(here))
}

// planWith is the plan with one more port; or the lines that say why there is none.
func (ag adopting) planWith(port spec.Port) (*plan.Plan, []string, error) {
	l := ag.ports.layers()
	l.ports = append(slices.Clone(l.ports), port)
	cfg, faults := l.merge()
	if lines, _ := ag.ports.newFaults(faults, ag.ports.intent(), ag.ports.file); len(lines) > 0 {
		return nil, lines, nil
	}
	p, err := ag.ports.resolve(cfg)
	return p, nil, err
}

// fileOf is the configuration file, if a port is declared.
func (ag adopting) fileOf(port string) (file string, declared bool) {
	return ag.state.Config.File, ag.ports.declared(port) != nil
}

// connect makes the port and attaches its device.
func (ag adopting) connect(r *adopt.Record) error {
	ports := append(slices.Clip(slices.Clone(ag.state.Ports)), r.Port)
	if err := ag.changer.change(func() { ag.state.Ports = ports }); err != nil {
		return err
	}
	for ag.attaching.left > 0 {
		ag.attaching.attach(nextTurn)
	}
	id := plan.PortID{Switch: r.Port.Switch, Name: r.Port.Name}
	if why := ag.Active().Problems[id]; !why.None() {
		return errors.New(why.Text())
	}
	if why := ag.attaching.whyNotAttached(id); !why.None() {
		return errors.New(why.Text())
	}
	return nil
}

// disconnect removes the port. At the start, before there is a plan, the plan is then made without the port.
func (ag adopting) disconnect(r *adopt.Record) error {
	if ag.Active().Plan != nil {
		return ag.changer.change(func() { ag.connected.drop(r.Port.Name) })
	}
	return ag.connected.forget(r.Port.Name)
}
