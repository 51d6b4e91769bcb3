package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// A host goes on with a port group that its ports use and that a newer definition lacks, since somebody removed it by
// force or restored a definition from before it. The rest of that definition becomes active.

// Handed is what a controller hands the host, as a configuration, with the objects of earlier versions that the host
// keeps beside it.
type Handed struct {
	Config *spec.Config
	beside []slice.Object
	// without says what of those was left out.
	without map[slice.Key]string
}

// Keep decides which objects of earlier versions the host keeps after a change, and reads what the host follows where
// that is another; used are the port groups that ports used before. A new port in a kept port group is an error.
func (d *Part) Keep(before Memory, used []state.Use) error {
	next := d.document.Slice
	if next == nil {
		d.document.KeptObjects, d.beside = nil, nil
		return nil
	}
	if next == before.Given() && len(d.document.KeptObjects)+len(d.beside) == 0 {
		return nil
	}
	k := state.KeepObjects(d.document.KeptObjects, before.Given(), next, used,
		d.uses())
	if len(k.Strangers) > 0 {
		return api.NewError(api.NotFound, keptForOthers(k)...)
	}
	d.document.KeptObjects = k.Objects
	if slices.EqualFunc(k.Active, d.beside, sameObject) {
		return nil
	}
	h, err := Read(next, k.Active, d.config)
	var faults spec.Faults
	if errors.As(err, &faults) {
		lines := make([]string, len(faults))
		for i, f := range faults {
			lines[i] = f.Error()
		}
		return api.NewError(api.Invalid, lines...)
	}
	if err != nil {
		return err
	}
	d.take(h)
	return nil
}

// take makes what was read what the host follows.
func (d *Part) take(h *Handed) {
	d.config, d.beside = h.Config, h.objects()
	d.document.KeptObjects = h.noted(d.document.KeptObjects)
}

// objects are those of earlier versions.
func (h *Handed) objects() []slice.Object { return h.beside }

// noted is the list with what was left out of the objects in it.
func (h *Handed) noted(kept []state.KeptObject) []state.KeptObject {
	if len(h.without) == 0 {
		return kept
	}
	kept = slices.Clone(kept)
	for i := range kept {
		if text := h.without[kept[i].Key]; text != "" {
			kept[i].Without = text
			at := slices.IndexFunc(h.beside, func(o slice.Object) bool { return o.Key == kept[i].Key })
			kept[i].Object = h.beside[at]
		}
	}
	return kept
}

func sameObject(a, b slice.Object) bool { return a.Key == b.Key && bytes.Equal(a.Doc, b.Doc) }

// keptForOthers says why ports can't use port groups that are kept for others.
func keptForOthers(k state.Keeping) (lines []string) {
	for _, u := range k.Strangers {
		for _, o := range k.Objects {
			if o.Kind == slice.PortGroup && o.Name == u.Group {
				lines = append(lines, fmt.Sprintf("ports[%s].portGroup: %s: the controllers' definition has no such "+
					"port group any more, and this host keeps it for other ports alone (%s): use another one, or add "+
					"it to the definition again", u.Port, u.Group, some(o.Ports)))
			}
		}
	}
	return lines
}

// mostListed is how many names one line lists.
const mostListed = 8

// some are names for a sentence.
func some(names []string) string {
	if n := len(names) - mostListed; n > 0 {
		return strings.Join(names[:mostListed], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}

// Read reads a version with the objects that are kept beside it. Where the teaming of a kept port group names
// uplinks that the switch lacks now, the port group gets the switch's. Anything else that does not fit is an error.
func Read(next *state.Slice, kept []slice.Object, before *spec.Config) (*Handed, error) {
	if next == nil {
		return &Handed{}, nil
	}
	if len(kept) == 0 {
		cfg, err := next.Set().Config(before)
		return &Handed{Config: cfg}, err
	}
	h := &Handed{beside: kept, without: map[slice.Key]string{}}
	cfg, err := h.over(next).Config(before)
	var faults spec.Faults
	if errors.As(err, &faults) {
		if _, alone := next.Set().Config(before); alone != nil {
			return nil, alone
		}
		if h.withoutTeaming(faults) {
			cfg, err = h.over(next).Config(before)
		}
	}
	if errors.As(err, &faults) {
		for i := range faults {
			faults[i].Message += fmt.Sprintf(" (ports of this host use what this definition lacks and does not go "+
				"with: %s; move the ports, or add it again)", names(kept))
		}
		return nil, faults
	}
	h.Config = cfg
	return h, err
}

func (h *Handed) over(next *state.Slice) *slice.Set {
	set := next.Set()
	for _, o := range h.beside {
		set.Put(o)
	}
	return set
}

// withoutTeaming leaves out the teaming of kept port groups that is at fault. It is false where another thing is.
func (h *Handed) withoutTeaming(faults spec.Faults) bool {
	h.beside = slices.Clone(h.beside)
	for _, f := range faults {
		i := slices.IndexFunc(h.beside, func(o slice.Object) bool {
			sw, group, _ := strings.Cut(o.Name, "/")
			return o.Kind == slice.PortGroup &&
				strings.HasPrefix(f.Path, fmt.Sprintf("switches[%s].portGroups[%s].teaming.", sw, group))
		})
		if i < 0 {
			return false
		}
		o := &h.beside[i]
		if h.without[o.Key] != "" { // two faults of one
			continue
		}
		var doc map[string]json.RawMessage
		if json.Unmarshal(o.Doc, &doc) != nil {
			return false
		}
		delete(doc, "teaming")
		text, err := json.Marshal(doc)
		if err != nil {
			return false
		}
		o.Doc = text
		h.without[o.Key] = fmt.Sprintf("its teaming was left out: %s: %s", f.Value, f.Message)
	}
	return true
}

func names(objects []slice.Object) string {
	var list []string
	for _, o := range objects {
		if o.Kind == slice.PortGroup {
			list = append(list, "port group "+o.Name)
		}
	}
	return strings.Join(list, ", ")
}

// Keeps are the port groups that the host keeps at the moment, with the ports that use them.
func (d *Part) Keeps() (list []api.KeptPortGroup) {
	if len(d.beside) == 0 {
		return nil
	}
	by := map[string][]string{}
	for _, u := range d.uses() {
		by[u.Group] = append(by[u.Group], u.Port)
	}
	for _, o := range d.document.KeptObjects {
		if users := by[o.Name]; o.Kind == slice.PortGroup && len(users) > 0 {
			slices.Sort(users)
			sw, group, _ := strings.Cut(o.Name, "/")
			list = append(list, api.KeptPortGroup{Switch: sw, PortGroup: group, Epoch: o.Epoch, Revision: o.Revision,
				Ports: users, Without: o.Without})
		}
	}
	return list
}

// KeptWarnings are about the port groups that are kept.
func (d *Part) KeptWarnings() (lines []string) {
	for _, k := range d.Keeps() {
		ports := fmt.Sprintf("%d ports", len(k.Ports))
		if len(k.Ports) == 1 {
			ports = "1 port"
		}
		line := fmt.Sprintf("keeps port group %s/%s that the definition lacks: %s (%s)", k.Switch, k.PortGroup, ports,
			some(k.Ports))
		if k.Without != "" {
			line += "; " + k.Without
		}
		lines = append(lines, line)
	}
	return lines
}

// IsKept reports whether a port group is one that is kept.
func (d *Part) IsKept(sw, group string) bool {
	return slices.ContainsFunc(d.beside, func(o slice.Object) bool {
		return o.Kind == slice.PortGroup && o.Name == sw+"/"+group
	})
}
