package spec

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// atOnce is how many port groups, hosts or other entries are written at once. The encoder keeps the whole tree of what
// it is given, and each event of it: for a large definition these are gigabytes, and most of the time goes into moving
// them.
const atOnce = 16

// FormatDefinition writes a definition in its canonical form, as Format does a configuration. It does so in parts,
// whose text is that of the whole.
func FormatDefinition(d *Definition) ([]byte, error) {
	w := &definitionText{}
	if len(d.Switches) == 0 {
		w.part(&Definition{}, "")
	}
	head := ""
	for _, s := range d.Switches {
		groups := s.PortGroups
		s.PortGroups = groups[:min(len(groups), atOnce)]
		w.part(&Definition{Switches: []Switch{s}}, head)
		head = "switches:\n"
		for rest := groups[len(s.PortGroups):]; len(rest) > 0; rest = rest[min(len(rest), atOnce):] {
			// Port groups are a switch's last field.
			more := Switch{Name: "s", PortGroups: rest[:min(len(rest), atOnce)]}
			w.part(&Definition{Switches: []Switch{more}}, "switches:\n- name: s\n  portGroups:\n")
		}
	}
	entries(w, "templates", d.Templates, func(some []HostTemplate) *Definition { return &Definition{Templates: some} })
	entries(w, "hosts", d.Hosts, func(some []HostEntry) *Definition { return &Definition{Hosts: some} })
	entries(w, "ports", d.Ports, func(some []PortSettings) *Definition { return &Definition{Ports: some} })
	if w.err != nil {
		return nil, w.err
	}
	return w.text.Bytes(), nil
}

// definitionText is the text of a definition so far.
type definitionText struct {
	text bytes.Buffer
	err  error
}

// part adds the text of a part without its beginning, which is there already.
func (w *definitionText) part(d *Definition, beginning string) {
	if w.err != nil {
		return
	}
	text, err := yaml.Dump(d)
	rest, ok := bytes.CutPrefix(text, []byte(beginning))
	if err == nil && !ok {
		err = fmt.Errorf("a part of a definition begins with %.60q, not with %q", text, beginning)
	}
	w.text.Write(rest)
	w.err = err
}

// entries adds a list of the definition.
func entries[T any](w *definitionText, field string, all []T, of func([]T) *Definition) {
	beginning := "switches: []\n"
	for ; len(all) > 0; all = all[min(len(all), atOnce):] {
		w.part(of(all[:min(len(all), atOnce)]), beginning)
		beginning = "switches: []\n" + field + ":\n"
	}
}
