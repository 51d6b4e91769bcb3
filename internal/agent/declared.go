package agent

import (
	"fmt"
	"slices"
	"strings"

	"heddle/internal/agent/state"
	"heddle/internal/slice/fields"
	"heddle/internal/spec"
)

// declared is what the file and a controller declare together, kept for as long as neither changes.
type declared struct {
	file, slice, both *spec.Config
	clash             spec.Faults
}

// whole is what that file and the controller declare together. The faults are about what both claim; then the result is
// the file's part alone.
func (ps *ports) whole(file *spec.Config) (*spec.Config, spec.Faults) {
	if ps.slice == nil || file == nil {
		return file, nil
	}
	if d := &ps.declares; d.file != file || d.slice != ps.slice {
		both, clash := spec.Join(file, ps.slice)
		if len(clash) > 0 {
			both = file
		}
		*d = declared{file, ps.slice, both, clash}
	}
	return ps.declares.both, ps.declares.clash
}

// clashLines says what a file and the controller's definition both claim.
func clashLines(clash spec.Faults) []string {
	lines := make([]string, len(clash))
	for i, f := range clash {
		lines[i] = fmt.Sprintf("%v: the host's configuration file and the controller's definition both claim it: "+
			"hand the switch over (heddle host hand-over), or take it out of one of them", f)
	}
	return lines
}

// findDeclared is the first port that the file or the controller declares for which is holds, nil for none.
func (ps *ports) findDeclared(is func(spec.Port) bool) *spec.Port {
	whole, _ := ps.whole(ps.file)
	if whole == nil {
		return nil
	}
	for i := range whole.Ports {
		if is(whole.Ports[i]) {
			return &whole.Ports[i]
		}
	}
	return nil
}

// declared finds a port of the file or the controller by name.
func (ps *ports) declared(name string) *spec.Port {
	return ps.findDeclared(func(p spec.Port) bool { return p.Name == name })
}

// declarer says who declares the port.
func (ps *ports) declarer(name string) string {
	if ps.slice != nil {
		for _, p := range ps.slice.Ports {
			if p.Name == name {
				return "the controller's definition"
			}
		}
	}
	return ps.state.Config.File
}

// onlySwitch is the name of the host's switch where it has one alone, else "".
func (ps *ports) onlySwitch() string {
	if whole, _ := ps.whole(ps.file); whole != nil && len(whole.Switches) == 1 {
		return whole.Switches[0].Name
	}
	return ""
}

// startSlice reads what a controller handed this host, as an agent that starts has it.
func (ps keeper) startSlice() error {
	now := usesOf(ps.state.Ports, ps.state.Overrides)
	k := state.KeepObjects(ps.state.KeptObjects, nil, ps.state.Slice, now, now)
	h, err := readHanded(ps.state.Slice, k.Active, nil)
	if err == nil {
		ps.take(h)
	}
	return err
}

// fitSlice makes the slice that an earlier agent left one that this program can read. That agent may have been of a
// later version: an upgrade that is taken back does not cut off guests. What is not known is left out and named; where
// ports would be less protected without it, only if the operator says so. The whole is kept for the later program.
func (ps keeper) fitSlice() error {
	if w := ps.state.WholeSlice; w != nil && w.Same(ps.state.Slice) {
		ps.state.Slice = w
	}
	ps.state.WholeSlice = nil
	whole := ps.state.Slice
	if whole == nil {
		return nil
	}
	fits, lacking := fields.Known().Fit(whole.Set())
	if len(lacking) == 0 {
		return nil
	}
	var weak []string
	for _, l := range lacking {
		ps.lacks = append(ps.lacks, l.String()+" is not active: this version of heddle does not know it; install the "+
			"later one again")
		if l.Security() {
			weak = append(weak, l.String())
		}
	}
	if len(weak) > 0 && !ps.unprotected {
		return fmt.Errorf("the controller's definition as last handed to this host has security fields that this "+
			"version of heddle does not know, so that ports would be less protected: %s. The kernel goes on by what "+
			"the agent before has made. Install the later version again, or start this one with --allow-unprotected",
			strings.Join(weak, ", "))
	}
	ps.state.WholeSlice = whole
	ps.state.Slice = &state.Slice{Epoch: whole.Epoch, Revision: whole.Revision, Objects: slices.Collect(fits.All()),
		Made: whole.Made}
	return nil
}

// declaredWarnings are the warnings about what the file and the controller declare.
func (ps *ports) declaredWarnings() []string {
	whole, _ := ps.whole(ps.file)
	return whole.Warnings()
}
