package agent

import (
	"fmt"

	"heddle/internal/agent/instance"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/spec"
)

// A host that boots has nothing in its kernel: its guests have no network until the agent runs. So a configuration file
// that is missing or has faults then does not keep the agent from starting by what it remembers: what was applied last,
// and what a controller handed it. An agent that starts again while the kernel forwards refuses such a file, by which
// no guest loses anything.

// bootsKnowing reports whether the host has booted since the agent ran last, and the agent remembers something to start
// by.
func bootsKnowing(o Options) bool {
	st, err := state.Peek(o.Paths.StateDir(o.Name))
	if err != nil || st.Place == "" || st.Config.Content == "" && st.Slice == nil {
		return false
	}
	here, err := instance.Place()
	return err == nil && st.Place != here && !exists(o.Paths.Pins(o.Name))
}

// fallsBack makes the configuration that was applied last the one that counts, where the host boots and the edited file
// cannot be used.
func (a *Agent) fallsBack(given *givenConfig, last state.Source) bool {
	if !given.boots {
		return false
	}
	why := a.unfit()
	if why == nil {
		return false
	}
	before := &spec.Config{}
	if last.Content != "" {
		var err error
		if before, err = spec.Parse(last.File, []byte(last.Content)); err != nil {
			return false
		}
	}
	a.ports.file, a.state.Config, given.unusable = before, last, why
	return true
}

// unfit is what keeps the file that was chosen from being used: it claims what a controller's definition has, or names
// devices that cannot serve. nil for nothing.
func (a *Agent) unfit() error {
	whole, clash := a.ports.whole(a.ports.file)
	if len(clash) > 0 {
		return api.NewError(api.Invalid, clashLines(clash)...)
	}
	if faults := spec.CheckDevices(whole, a.lookup); len(faults) > 0 {
		return api.NewError(api.Invalid, faultLines(faults)...)
	}
	return nil
}

// unused says that the file is not used; nil where it is, or there is none.
func (g *givenConfig) unused() []string {
	if g == nil || g.unusable == nil {
		return nil
	}
	return []string{fmt.Sprintf("the configuration file %s is not used since the host has booted, what was applied "+
		"last counts: %v: correct the file, and have the agent read it (systemctl reload heddle)", g.src.File,
		g.unusable)}
}
