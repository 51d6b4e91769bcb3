package slice

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/spec"
)

// Source is what faults of a slice name in place of a file.
const Source = "the controller's definition"

// Config is the slice as a configuration. It is read as strictly as a file: a field that this program does not know is
// a fault, and never left out in silence. before, if not nil, is an earlier one, which makes reading faster.
func (s *Set) Config(before *spec.Config) (*spec.Config, error) {
	text, err := s.document()
	if err != nil {
		return nil, err
	}
	cfg, err := spec.ParseAfter(before, Source, text)
	var faults spec.Faults
	if errors.As(err, &faults) && slices.ContainsFunc(faults, func(f spec.Fault) bool { return f.TooMuch }) {
		return nil, spec.Faults{s.tooMuch()}
	}
	if errors.As(err, &faults) { // positions are of a text that nobody has seen
		for i := range faults {
			faults[i].File, faults[i].Line, faults[i].Column = Source, 0, 0
		}
		return nil, faults
	}
	return cfg, err
}

// tooMuch says that the slice has more than an agent reads, and what to do.
func (s *Set) tooMuch() spec.Fault {
	groups := 0
	for o := range s.All() {
		if o.Kind == PortGroup {
			groups++
		}
	}
	return spec.Fault{File: Source, TooMuch: true, Message: fmt.Sprintf("this host is handed %d port groups, which is "+
		"more than an agent reads (%d values, which are some %d port groups with settings): give port groups labels, "+
		"so that the host has only those that it may serve, or take switches from its template",
		groups, spec.MaxValues, spec.MaxValues/valuesOfGroup)}
}

// valuesOfGroup is how many values a port group has that sets a few policies, as an import writes them.
const valuesOfGroup = 15

// document is the slice as the text of a configuration file, in JSON.
func (s *Set) document() ([]byte, error) {
	var faults spec.Faults
	fault := func(o Object, format string, args ...any) {
		faults = append(faults, spec.Fault{File: Source, Path: o.Key.String(), Message: fmt.Sprintf(format, args...)})
	}
	groups := map[string][]json.RawMessage{}
	var switches []Object
	var ports []json.RawMessage
	for o := range s.All() {
		switch o.Kind {
		case Switch:
			switches = append(switches, o)
		case PortGroup:
			sw, _, ok := strings.Cut(o.Name, "/")
			if _, there := s.Get(Key{Switch, sw}); !ok || !there {
				fault(o, "there is no switch of it")
				continue
			}
			groups[sw] = append(groups[sw], o.Doc)
		case Port:
			ports = append(ports, o.Doc)
		case StaticPort: // of ports that guests' connections make: see Settings
		default:
			fault(o, "this agent does not know objects of the kind %s: update it", o.Kind)
		}
	}
	whole := map[string][]json.RawMessage{}
	for _, o := range switches {
		doc, err := withGroups(o.Doc, groups[o.Name])
		if err != nil {
			fault(o, "%v", err)
			continue
		}
		whole["switches"] = append(whole["switches"], doc)
	}
	if len(ports) > 0 {
		whole["ports"] = ports
	}
	if len(faults) > 0 {
		return nil, faults
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Source, err)
	}
	return text, nil
}

// withGroups is a switch's document with its port groups.
func withGroups(doc []byte, groups []json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(doc, &fields); err != nil {
		return nil, err
	}
	if len(groups) > 0 {
		list, err := json.Marshal(groups)
		if err != nil {
			return nil, err
		}
		fields["portGroups"] = list
	}
	return json.Marshal(fields)
}

// Settings are what the definition sets for static ports that are bound on this host, by their numbers. One that cannot
// be read is a fault.
func (s *Set) Settings() (map[string]spec.PortSettings, error) {
	all := map[string]spec.PortSettings{}
	for o := range s.All() {
		if o.Kind != StaticPort {
			continue
		}
		var p spec.PortSettings
		if err := json.Unmarshal(o.Doc, &p); err != nil {
			return nil, spec.Faults{{File: Source, Path: o.Key.String(), Message: err.Error()}}
		}
		all[p.ID] = p
	}
	return all, nil
}
