package adoption

import (
	"errors"
	"fmt"
	"slices"

	"heddle/internal/agent/adopt"
	"heddle/internal/agent/instance"
	"heddle/internal/agent/state"
	"heddle/internal/host/hostdev"
	"heddle/internal/host/hostnet"
	"heddle/internal/host/netspace"
	"heddle/internal/spec"
)

// GiveBack moves what host ports have adopted back to its devices. It does the work of an agent that is no longer
// running; the host ports are removed with the rest. st is nil if it cannot be read; the journal suffices.
func GiveBack(st *state.State, store *state.Store, name string) error {
	j, err := adopt.OpenJournal(store.Dir())
	if err != nil || len(j.Records) == 0 {
		return err
	}
	here, err := instance.Place()
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range slices.Clone(j.Records) {
		back := func() error { return backWithout(j, r, name) }
		var err error
		if r.Place != here {
			path, errFind := instance.FindPlace(r.Place)
			if err = errFind; err == nil && path != "" {
				err = netspace.In(path, back)
			}
		} else {
			err = back()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("move the host's addresses back from %s to %s: %w", r.Port.Device,
				r.Config.Device, err))
		}
		j.Remove(r)
		if st != nil {
			st.Ports = slices.DeleteFunc(st.Ports, func(p spec.Port) bool { return p.Name == r.Port.Name })
		}
	}
	errs = append(errs, j.Save())
	if st != nil {
		errs = append(errs, store.Save(st))
	}
	return errors.Join(errs...)
}

// backWithout undoes one adoption without an agent. It leaves the port alone: its frames pass until the programs are
// removed.
func backWithout(j *adopt.Journal, r *adopt.Record, name string) error {
	dev, err := hostdev.Open()
	if err != nil {
		return err
	}
	defer dev.Close()
	var net hostnet.Net
	errRead := readAgain(dev, net, r) // if this fails, what was there at first is restored
	left := func(*adopt.Record) error { return nil }
	_, err = adopt.Back(r, j.Save, &mover{agent: name, dev: dev, net: net, disconnect: left, keep: true})
	return errors.Join(errRead, err)
}
