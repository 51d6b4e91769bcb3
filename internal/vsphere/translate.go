package vsphere

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// Options say what is taken, and how hosts differ from what they were.
type Options struct {
	// Switches are the names of those that are taken; none: all.
	Switches []string
	// Devices are names of network cards on Linux by those on ESXi, such as eno1 by vmnic0.
	Devices map[string]string
	// HostPorts takes the VMkernel adapters too, with their addresses.
	HostPorts bool
}

// Result is a definition that can be applied, and what was read.
type Result struct {
	Definition *spec.Definition `json:"definition"`
	Switches   int              `json:"switches"`
	PortGroups int              `json:"portGroups"`
	LAGs       int              `json:"lags"`
	Hosts      int              `json:"hosts"`
	HostPorts  int              `json:"hostPorts"`
	Notes      []Note           `json:"notes"`
}

// Translate makes a definition of what was read. Its order follows names alone, so that equal inventories give equal
// definitions. It fails where a switch of the options is not there, or there is none at all.
func (inv *Inventory) Translate(q Options) (*Result, error) {
	r := &Result{Definition: &spec.Definition{Switches: []spec.Switch{}}, Notes: []Note{}}
	chosen, err := inv.chosen(q.Switches)
	if err != nil {
		return nil, err
	}
	called := newNames(true)
	all := make([]*translated, 0, len(chosen))
	for _, o := range chosen {
		s := &translated{inv: inv, from: o, about: r.on("switch", o.named())}
		s.to.Name = called.fresh(o.named())
		s.renamed(s.about, o.named(), s.to.Name)
		s.all()
		all = append(all, s)
	}
	hosts := &placement{inv: inv, options: q, result: r, switches: all}
	hosts.all()
	for _, s := range all {
		r.Definition.Switches = append(r.Definition.Switches, s.to)
		r.PortGroups += len(s.to.PortGroups)
		r.LAGs += len(s.to.LAGs)
	}
	r.Switches = len(all)
	if err := r.Definition.Validate(); err != nil {
		return nil, fmt.Errorf("what was read makes no valid definition: %w", err)
	}
	return r, nil
}

// chosen are the switches that are taken, by name.
func (inv *Inventory) chosen(wanted []string) ([]*object, error) {
	if len(inv.switches) == 0 {
		return nil, fmt.Errorf("there is no distributed switch in what was read: dump objects of the type " +
			"VmwareDistributedVirtualSwitch with their config")
	}
	var all []*object
	have := map[string]bool{}
	for _, o := range inv.switches {
		have[o.named()] = true
		if len(wanted) == 0 || slices.Contains(wanted, o.named()) {
			all = append(all, o)
		}
	}
	for _, w := range wanted {
		if !have[w] {
			return nil, fmt.Errorf("there is no switch %s in what was read", printable.Short(w, 100))
		}
	}
	sortObjects(all)
	return all, nil
}

func sortObjects(all []*object) {
	slices.SortStableFunc(all, func(a, b *object) int {
		return cmp.Or(strings.Compare(a.named(), b.named()), strings.Compare(a.Self.Value, b.Self.Value))
	})
}
