package definition

import (
	"fmt"
	"slices"
	"strings"

	"heddle/internal/agent/state"
	"heddle/internal/slice"
	"heddle/internal/slice/fields"
	"heddle/internal/spec"
)

// Part has the controllers' definition. Only the agent's loop uses it.
type Part struct {
	document *state.Definition
	// uses are the port groups of the ports that were connected by command.
	uses     func() []state.Use
	complain func(what string, err error)
	// unprotected: a version is taken of which this program does not know a security field (--allow-unprotected).
	unprotected bool

	config  *spec.Config   // what is declared; nil if the host follows no controllers
	beside  []slice.Object // of earlier versions, that config has too
	sets    settings       // for static ports
	another chan struct{}  // closed and replaced when another version is active
	lacks   []string       // what of the version an earlier program left, and this one does not know
}

// New returns the part with what the previous agent left. uses are the port groups of the ports that were connected by
// command.
func New(document *state.Definition, uses func() []state.Use, complain func(what string, err error)) *Part {
	return &Part{document: document, uses: uses, complain: complain}
}

// AllowUnprotected says whether a version is taken of which this program does not know a security field.
func (d *Part) AllowUnprotected(is bool) { d.unprotected = is }

// Config is what the controllers declare on this host, nil if it follows none.
func (d *Part) Config() *spec.Config { return d.config }

// Given is the version that a controller handed over last, nil for none.
func (d *Part) Given() *state.Slice { return d.document.Slice }

// Lacks says what of the version an earlier program left, and this one does not know.
func (d *Part) Lacks() []string { return d.lacks }

// Defines reports whether the controllers define a switch.
func (d *Part) Defines(name string) bool {
	return d.config != nil && slices.ContainsFunc(d.config.Switches, func(s spec.Switch) bool { return s.Name == name })
}

// IsStatic reports whether a port group that controllers hand this host has static ports.
func (d *Part) IsStatic(sw, group string) bool {
	if d.config == nil || d.IsKept(sw, group) { // which no controller binds ports of
		return false
	}
	for i := range d.config.Switches {
		for k := range d.config.Switches[i].PortGroups {
			g := &d.config.Switches[i].PortGroups[k]
			if d.config.Switches[i].Name == sw && g.Name == group {
				return g.HasStaticPorts()
			}
		}
	}
	return false
}

// Memory is what the part had, so that a change can be taken back.
type Memory struct {
	config   *spec.Config
	document state.Definition
	beside   []slice.Object
	lacks    []string
}

// Given is the version of then, Kept what was kept beside it.
func (m Memory) Given() *state.Slice      { return m.document.Slice }
func (m Memory) Kept() []state.KeptObject { return m.document.KeptObjects }

// Remember returns what the part has.
func (d *Part) Remember() Memory { return Memory{d.config, *d.document, d.beside, d.lacks} }

// Return goes back to what the part had.
func (d *Part) Return(m Memory) {
	d.config, d.beside, d.lacks = m.config, m.beside, m.lacks
	d.document.Slice, d.document.Reverted = m.document.Slice, m.document.Reverted
	d.document.KeptObjects = m.document.KeptObjects
}

// Take makes a version that was read what the host follows.
func (d *Part) Take(h *Handed, next *state.Slice) {
	d.take(h)
	d.document.Slice = next
}

// Renew makes a version what the host follows that declares nothing else for it.
func (d *Part) Renew(h *Handed, next *state.Slice) {
	d.document.Slice, d.beside, d.lacks = next, h.objects(), nil
}

// Note notes more of the version that the host follows.
func (d *Part) Note(next *state.Slice) { d.document.Slice = next }

// Beside are the objects that would be kept beside another version, with the configuration of the present one.
func (d *Part) Beside(next *state.Slice) (kept []slice.Object, before *spec.Config) {
	now := d.uses()
	return state.KeepObjects(d.document.KeptObjects, d.document.Slice, next, now, now).Active, d.config
}

// Leave has the host follow no controllers; what it keeps is dropped by Keep.
func (d *Part) Leave() { d.config, d.document.Slice, d.document.Reverted = nil, nil, nil }

// Reverted is the version from which the host went back, nil for none.
func (d *Part) Reverted() *state.Reverted { return d.document.Reverted }

// Revert remembers that the host goes back from the version that it has.
func (d *Part) Revert(why string) {
	d.document.Reverted = d.document.Reverted.Again(d.document.Slice, why)
}

// Stay forgets from which version the host went back.
func (d *Part) Stay() { d.document.Reverted = nil }

// Release removes a port, whose guest was removed, from those that may use kept port groups.
func (d *Part) Release(port string) {
	d.document.KeptObjects = state.Released(d.document.KeptObjects, port)
}

// PutKept replaces what is kept.
func (d *Part) PutKept(list []state.KeptObject) { d.document.KeptObjects = list }

// Start reads what a controller handed this host, as an agent that starts has it.
func (d *Part) Start() error {
	now := d.uses()
	k := state.KeepObjects(d.document.KeptObjects, nil, d.document.Slice, now, now)
	h, err := Read(d.document.Slice, k.Active, nil)
	if err == nil {
		d.take(h)
	}
	return err
}

// Fit makes the slice that an earlier agent left one that this program can read. That agent may have been of a
// later version: an upgrade that is taken back does not cut off guests. What is not known is left out and named; where
// ports would be less protected without it, only if the operator says so. The whole is kept for the later program.
func (d *Part) Fit() error {
	if w := d.document.WholeSlice; w != nil && w.Same(d.document.Slice) {
		d.document.Slice = w
	}
	d.document.WholeSlice = nil
	whole := d.document.Slice
	if whole == nil {
		return nil
	}
	fits, lacking := fields.Known().Fit(whole.Set())
	if len(lacking) == 0 {
		return nil
	}
	var weak []string
	for _, l := range lacking {
		d.lacks = append(d.lacks, l.String()+" is not active: this version of heddle does not know it; install the "+
			"later one again")
		if l.Security() {
			weak = append(weak, l.String())
		}
	}
	if len(weak) > 0 && !d.unprotected {
		return fmt.Errorf("the controller's definition as last handed to this host has security fields that this "+
			"version of heddle does not know, so that ports would be less protected: %s. The kernel goes on by what "+
			"the agent before has made. Install the later version again, or start this one with --allow-unprotected",
			strings.Join(weak, ", "))
	}
	d.document.WholeSlice = whole
	d.document.Slice = &state.Slice{Epoch: whole.Epoch, Revision: whole.Revision, Objects: slices.Collect(fits.All()),
		Made: whole.Made}
	return nil
}
