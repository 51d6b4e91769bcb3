package agent

import (
	"fmt"

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
	if ps.definition.Config() == nil || file == nil {
		return file, nil
	}
	if d := &ps.declares; d.file != file || d.slice != ps.definition.Config() {
		both, clash := spec.Join(file, ps.definition.Config())
		if len(clash) > 0 {
			both = file
		}
		*d = declared{file, ps.definition.Config(), both, clash}
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
	if defined := ps.definition.Config(); defined != nil {
		for _, p := range defined.Ports {
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

// declaredWarnings are the warnings about what the file and the controller declare.
func (ps *ports) declaredWarnings() []string {
	whole, _ := ps.whole(ps.file)
	return whole.Warnings()
}
