package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"heddle/internal/agent/active"
	"heddle/internal/agent/definition"
	"heddle/internal/agent/state"
	"heddle/internal/agent/view"
	"heddle/internal/api"
	"heddle/internal/dataplane/compile"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// ports is the desired state: what the file and commands ask for.
type ports struct {
	*shared
	connected *connected
	// configFile is the path given with --config; "" without.
	configFile string
	// inKernel: the kernel had this agent's switch when the agent started.
	inKernel   bool
	definition *definition.Part
	file       *spec.Config                // as declared by the file
	declares   declared                    // by file and controller
	parsed     atomic.Pointer[spec.Config] // the file read last, for the next reading
	cfg        *spec.Config                // with what commands made
	// about the configuration; a port whose device is missing reports that itself, while it lasts
	warnings []string
	// unused says that the file given is not used since the boot; nil where it is.
	unused  []string
	misfits []misfit   // known faults of what commands made, against the file
	plan    *plan.Plan // of cfg, unless stale
	stale   bool       // cfg, or an adopted MAC, changed since plan was made
	next    *plan.Plan // of cfg, if it was made ahead of reconcile
	kept    string     // the newest configuration in the history
}

func (ps *ports) layers() layers {
	whole, _ := ps.whole(ps.file)
	return layers{file: whole, ports: ps.state.Ports, overrides: ps.state.Overrides,
		defined: ps.definedPolicies(),
		uplinks: ps.state.Maintenance}
}

// intent is the part of the state that commands change; the held devices are not part of it.
type intent struct {
	file       *spec.Config
	config     state.Source
	definition definition.Memory
	ports      []spec.Port
	overrides  map[string]state.Override
	kept       []state.Kept
	cfg        *spec.Config
	waits      []state.Wait
	uplinks    []state.Maintenance
	nics       []state.NIC
	goods      []state.Goods
	devices    []state.Given
}

func (ps *ports) intent() intent {
	return intent{ps.file, ps.state.Config, ps.definition.Remember(), slices.Clone(ps.state.Ports),
		maps.Clone(ps.state.Overrides), ps.state.Kept, ps.cfg, ps.state.Waits, ps.state.Maintenance, ps.state.NICs,
		ps.state.Goods, ps.state.Given}
}

func (ps *ports) restore(i intent) {
	ps.file, ps.state.Config, ps.state.Ports, ps.state.Overrides = i.file, i.config, i.ports, i.overrides
	ps.state.Kept, ps.cfg, ps.state.Waits = i.kept, i.cfg, i.waits
	ps.state.Maintenance, ps.state.NICs, ps.state.Goods = i.uplinks, i.nics, i.goods
	ps.state.Given = i.devices
	ps.definition.Return(i.definition)
}

// uses are the port groups that ports used then.
func (i intent) uses() []state.Use { return usesOf(i.ports, i.overrides) }

// definedPolicies are the policies that the definition sets for run-time ports, by the ports' names.
func (ps *ports) definedPolicies() map[string]spec.Policy {
	if !ps.definition.AnySettings() {
		return nil
	}
	all := map[string]spec.Policy{}
	for _, n := range ps.state.NICs {
		if s, ok := ps.definition.SettingsOf(ps.state.NICOf(n.Port)); ok {
			all[n.Port] = s.Policy
		}
	}
	return all
}

// newFaults returns the faults that a change brings. Faults known since the start (the file was edited while the agent
// was stopped) do not refuse a change. If another file does not fit ports that were connected before, the line says so:
// who applies a file looks for the fault in it, and the port is not there. missing reports whether all of the faults
// are names that nothing has.
func (ps *ports) newFaults(faults spec.Faults, before intent, file *spec.Config) (lines []string, missing bool) {
	missing = true
	for _, f := range faults {
		line := f.Error()
		if slices.ContainsFunc(ps.misfits, func(m misfit) bool { return m.fault == line }) {
			continue
		}
		if file != before.file {
			line += byCommand(f, before.ports)
			if way := remedy(f, file, ps.state.Overrides); way != "" {
				line += " (" + way + ")"
			}
		}
		lines = append(lines, line)
		missing = missing && f.Missing
	}
	return lines, missing && file == before.file
}

// byCommand describes the run-time port that a fault is about; "" for other faults.
func byCommand(f spec.Fault, ports []spec.Port) string {
	for _, p := range ports {
		if path := "ports[" + p.Name + "]"; strings.HasPrefix(f.Path, path) && f.Path != path+".name" {
			return fmt.Sprintf(" (port %s was connected by command: move it, or disconnect it with heddle port "+
				"disconnect %s)", p.Name, printable.ShellWord(p.Name))
		}
	}
	return ""
}

// misfit is a fault of what a command made, against the file.
type misfit struct {
	fault string
	// remedy is what ends it; "" if that is not known.
	remedy string
}

// texts returns the misfits for people.
func texts(list []misfit) (lines []string) {
	for _, m := range list {
		if m.remedy != "" {
			m.fault += " (" + m.remedy + ")"
		}
		lines = append(lines, m.fault)
	}
	return lines
}

func (ps *ports) keepMisfits(faults spec.Faults) {
	ps.misfits = nil
	for _, f := range faults {
		ps.misfits = append(ps.misfits, misfit{f.Error(), remedy(f, ps.file, ps.state.Overrides)})
	}
}

// remedy returns what ends a fault of a port of the file that a command has moved into a port group which is gone.
func remedy(f spec.Fault, file *spec.Config, moved map[string]state.Override) string {
	if file == nil {
		return ""
	}
	for _, p := range file.Ports {
		if o := moved[p.Name]; o.PortGroup != "" && f.Path == "ports["+p.Name+"].portGroup" {
			return fmt.Sprintf("a command moved it there; to forget the move: heddle port move %s --port-group %s",
				printable.ShellWord(p.Name), printable.ShellWord(p.PortGroup))
		}
	}
	return ""
}

// keptBeside returns the ports of a file that commands have made different, and that applying the file leaves so (S10).
func (ps *ports) keptBeside(file *spec.Config) (kept []api.KeptPort) {
	if len(ps.state.Overrides) == 0 {
		return nil
	}
	for _, p := range file.Ports {
		k := api.KeptPort{Port: portRef(p)}
		for _, o := range view.Overrides(ps.state.Overrides[p.Name], p) {
			if !o.Value.Equal(o.File) {
				k.Overrides = append(k.Overrides, o)
			}
		}
		if len(k.Overrides) > 0 {
			kept = append(kept, k)
		}
	}
	return kept
}

// forgetOverrides removes the overrides of ports and the maintenance of uplinks that no longer exist.
func (ps *ports) forgetOverrides() {
	there := make(map[string]bool, len(ps.cfg.Ports))
	for _, p := range ps.cfg.Ports {
		there[p.Name] = true
	}
	maps.DeleteFunc(ps.state.Overrides, func(name string, o state.Override) bool {
		return !there[name] || o == state.Override{}
	})
	ps.forgetMaintenance()
}

// planned finds a port of the plan by name; port names are unique on a host.
func planned(p *plan.Plan, name string) *plan.Port {
	for _, sw := range p.Switches {
		for _, port := range sw.Ports {
			if port.ID.Name == name {
				return port
			}
		}
	}
	return nil
}

// resolve makes the plan of a configuration; before the first configuration the plan is empty.
func (ps *ports) resolve(cfg *spec.Config) (*plan.Plan, error) {
	if len(cfg.Switches) == 0 {
		return &plan.Plan{}, nil
	}
	p, err := plan.ResolveValid(cfg, ps.state.PortNumbers())
	if err != nil {
		return nil, err
	}
	ps.waitMACs(p)
	p.SetMACTable(ps.kernel.MACTable())
	// Check now, as if every port were connected, and not when the device that is one too many appears.
	return p, compile.Fits(p)
}

// draft begins the value that a reconcile makes. It makes the plan of the present configuration if the plan is stale,
// and reports whether it was. The plan may have been made ahead of the reconcile.
func (ps *ports) draft() (now *active.Draft, fresh bool, err error) {
	if fresh = ps.stale; fresh {
		p := ps.next
		if ps.next = nil; p == nil {
			if p, err = ps.resolve(ps.cfg); err != nil {
				return nil, true, err
			}
		}
		ps.plan, ps.stale = p, false
	}
	return active.NewDraft(ps.cfg, ps.plan), fresh, nil
}

// save writes the state if it changed. A new configuration is added to the history; if that fails, the change stays
// active.
func (ps *ports) save() error {
	ps.keepNumbers()
	if err := ps.store.Save(ps.state); err != nil {
		return err
	}
	if now := ps.state.Config; now.Content != "" && now.Content != ps.kept {
		if err := ps.store.History().Keep(now, time.Now()); err != nil {
			ps.Complain("add the configuration to the history", err)
			return nil
		}
		ps.kept = now.Content
	}
	return nil
}

// keepNumbers makes the state keep the numbers of the present ports and uplinks; the number of one that is gone is free
// again.
func (ps *ports) keepNumbers() {
	var numbers []state.Number
	for _, sw := range ps.plan.Switches {
		for _, p := range sw.Ports {
			numbers = append(numbers, state.Number{ID: p.ID, Number: p.Number})
		}
		for _, u := range sw.Uplinks {
			numbers = append(numbers, state.Number{ID: u.ID, Number: u.Number})
		}
	}
	ps.state.Numbers = numbers
}

// waitMACs gives waiting ports the MACs that their configuration cannot have while another port has them.
func (ps *ports) waitMACs(p *plan.Plan) {
	for _, w := range ps.state.Waits {
		if port := p.Port(w.ID); port != nil && port.InitialMAC.IsZero() {
			port.InitialMAC = w.MAC
			if !w.MAC.IsZero() {
				port.Monitor = w.Monitor
			}
		}
	}
}

func (ps *ports) planWith(file *spec.Config) (*plan.Plan, error) {
	l := ps.layers()
	l.file, _ = ps.whole(file)
	cfg, _ := l.merge()
	return ps.resolve(cfg)
}

// chooseConfig sets the active file; fresh: it was never applied before.
func (ps *ports) chooseConfig(given *givenConfig) (fresh bool, err error) {
	if err := ps.definition.Fit(); err != nil {
		return false, err
	}
	if err = ps.definition.Start(); err != nil {
		return false, fmt.Errorf("the controller's definition as last handed to this host is not valid for this "+
			"program; start the program before, or heddle host leave and join again: %w", err)
	}
	last := ps.state.Config
	switch {
	case given != nil && given.cfg != nil && given.src.Seen != last.Seen:
		ps.file, ps.state.Config = given.cfg, given.src
		if last.Content != "" {
			ps.log.Info("the configuration file was edited since it was last read: it counts", "file", given.src.File)
		}
		return true, nil
	case last.Content != "":
		cfg, err := spec.Parse(last.File, []byte(last.Content))
		if err != nil {
			return false, ps.newestValid(err)
		}
		ps.file = cfg
		if given != nil && given.cfg != nil && last.Content != given.src.Content {
			ps.log.Info("the configuration last applied counts; the file given was not edited since", "applied",
				last.File, "given", given.src.File)
		}
	default:
		ps.file = &spec.Config{}
		if last.File == "" {
			ps.log.Info("no configuration yet: give one with heddle apply -f FILE")
		}
	}
	return false, nil
}
