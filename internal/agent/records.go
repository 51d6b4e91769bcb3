package agent

import (
	"fmt"
	"slices"

	"heddle/internal/agent/adopt"
	"heddle/internal/api"
	"heddle/internal/host/hostnet"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// records are what the next agent must know of moves of the host's own addresses, and of the change that is on trial.
type records struct {
	*shared
	ports *ports

	journal *adopt.Journal // nil before it is read
	net     hostnet.Net
}

// open reads the journal, unless it is read already.
func (rs *records) open() (err error) {
	if rs.journal == nil {
		rs.journal, err = adopt.OpenJournal(rs.store.Dir())
	}
	return err
}

// adopted returns the record of the port, nil for a port that adopted nothing.
func (rs *records) adopted(name string) *adopt.Record {
	if rs.journal == nil {
		return nil
	}
	return rs.journal.OfPort(name)
}

// cutsOff is the error for a command that would cut the host off its network (S81): the host's own addresses are on the
// port.
func (rs *records) cutsOff(name string) error {
	r := rs.adopted(name)
	if r == nil {
		return nil
	}
	return api.NewError(api.Invalid, fmt.Sprintf("port %s has the addresses that this host had on %s, and would be "+
		"cut off: move them back first (heddle host-port release %s)", name, r.Config.Device,
		printable.ShellWord(name)))
}

// portsBeside returns the ports made by command when the file is active. An adopted port stays until it is released: if
// the file declares it, it is the file's; if the file no longer declares it, it stays as a run-time port, so that the
// file does not cut the host off.
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

// takesOver reports whether the declared port is the same as the adopted one: another MAC or interface would cut the
// host off.
func takesOver(declared, adopted spec.Port) bool {
	mac, err := plan.ParseMAC(declared.MAC)
	return err == nil && mac.String() == adopted.MAC && declared.Role == spec.Host &&
		declared.Switch == adopted.Switch && deviceOf(declared) == adopted.Device
}

func deviceOf(p spec.Port) string {
	if p.Device == "" {
		return p.Name
	}
	return p.Device
}

// keepAdopted makes sure that every adopted port exists: declared by the file, or else as a run-time port.
func (rs *records) keepAdopted() { rs.state.Ports = rs.portsBeside(rs.ports.file) }
