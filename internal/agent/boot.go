package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/spec"
)

// A configuration file that is missing or has faults does not keep the agent from starting by what it remembers: what
// was applied last, and what a controller handed it. At a boot no guest would have a network without it, and after an
// upgrade of the program nothing would follow links, devices and commands any more. Status says that the file is not
// used. Without anything to remember such a file is an error.

// remains is what an agent knows from before it starts.
type remains struct{ state *state.State }

// remainsOf reads what an agent knows from before, before it starts.
func remainsOf(o Options) remains {
	st, err := state.Peek(o.Paths.StateDir(o.Name))
	if err != nil || st.Place == "" {
		return remains{}
	}
	return remains{st}
}

// any reports whether there are switches to start by, of a file or of a controller.
func (r remains) any() bool {
	if r.state == nil {
		return false
	}
	file := r.file()
	return r.state.Slice != nil || file == nil || len(file.Switches) > 0
}

// file is the configuration that was applied last, empty if none was; nil if it cannot be read.
func (r remains) file() *spec.Config {
	if r.state == nil || r.state.Config.Content == "" {
		return &spec.Config{}
	}
	cfg, err := spec.Parse(r.state.Config.File, []byte(r.state.Config.Content))
	if err != nil {
		return nil
	}
	return cfg
}

// newestValid makes the newest configuration of the history that this program can read, and that has switches, the one
// that counts, where the one that was applied last is not valid for it: another version of the program took it. why is
// what is wrong with that one. That is for a boot alone. Where the kernel has the switch, it forwards by what was
// applied last, and an older version would take from it whatever it lacks.
func (ps *ports) newestValid(why error) error {
	if ps.inKernel || len(ps.state.Held) > 0 {
		return fmt.Errorf("the configuration last applied is not valid for this program; the kernel goes on "+
			"forwarding by it, and nothing was changed: start the program before, or the agent with --config and a "+
			"file that is valid: %w", why)
	}
	refused := fmt.Errorf("the configuration last applied is not valid for this program, and neither is one before "+
		"it; start the agent with --config and a file that is, or with the program before: %w", why)
	list, err := ps.store.History().List()
	if err != nil {
		return errors.Join(refused, err)
	}
	last := ps.state.Config
	for _, v := range slices.Backward(list) {
		_, text, err := ps.store.History().Get(v.Number)
		if err != nil || string(text) == last.Content {
			continue
		}
		cfg, err := spec.Parse(v.File, text)
		if err != nil || len(cfg.Switches) == 0 {
			continue
		}
		ps.file, ps.state.Config = cfg, state.Source{File: v.File, Content: string(text), Restores: v.Number,
			By: fmt.Sprintf("start by version %d", v.Number), Seen: last.Seen}
		ps.unused = append(ps.unused, fmt.Sprintf("the configuration last applied (%s) is not valid for this "+
			"program, and version %d of the history, of %s, counts: %v: correct the file and apply it", last.File,
			v.Number, v.At.Local().Format(time.DateTime), why))
		return nil
	}
	return refused
}

// fallBack makes the configuration that was applied last the one that counts, where the edited file cannot be used.
func (a *Agent) fallBack(given *givenConfig, last state.Source) {
	if given == nil || given.cfg == nil || !given.remembers {
		return
	}
	why := a.unfit()
	if why == nil {
		return
	}
	before := &spec.Config{}
	if last.Content != "" {
		var err error
		if before, err = spec.Parse(last.File, []byte(last.Content)); err != nil {
			return
		}
	}
	a.ports.file, a.state.Config, given.unusable = before, last, why
}

// unfit is what keeps the file that was chosen from being used: it claims what a controller's definition has. nil for
// nothing.
func (a *Agent) unfit() error {
	if _, clash := a.ports.whole(a.ports.file); len(clash) > 0 {
		return api.NewError(api.Invalid, clashLines(clash)...)
	}
	return nil
}

// unused says that the file is not used; nil where it is, or there is none.
func (g *givenConfig) unused() []string {
	if g == nil || g.unusable == nil {
		return nil
	}
	return []string{fmt.Sprintf("the configuration file %s was not used at the agent's start, what was applied last "+
		"counts: %v: correct the file, and have the agent read it (systemctl reload heddle)", g.src.File, g.unusable)}
}
