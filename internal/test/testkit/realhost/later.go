package realhost

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"heddle/internal/test/testkit"
)

// A later version of the programs is the same source with two fields and a kind of objects more: what this
// version does with what it does not know is seen beside it, and so is what the later one does with this one. What
// belongs to a port travels in another form of the later version, with a counter more.

// laterEdits turn this version's sources into the later one's: by file, what is put in place of what.
var laterEdits = map[string][][2]string{
	"internal/spec/types.go": {{"type Security struct {\n",
		"type Security struct {\n\tTomorrow *bool `yaml:\"tomorrow,omitempty\" json:\"tomorrow,omitzero\"`\n"},
		{"type PortGroup struct {\n",
			"type PortGroup struct {\n\tRemark string `yaml:\"remark,omitempty\" json:\"remark,omitzero\"`\n"}},
	"internal/spec/definition.go": {{"type Definition struct {\n",
		"type Definition struct {\n\tNotes []Note `yaml:\"notes,omitempty\" json:\"notes,omitzero\"`\n"},
		{"// HostTemplate gives", "type Note struct {\n\tName string `yaml:\"name\" json:\"name\"`\n}\n\n" +
			"// HostTemplate gives"}},
	"internal/agent/portstate/pack.go": {{"const version = 1\n", "const version = 2\n"},
		{"\tfor _, n := range g.Base.Names(", "\tb.Counters = append(b.Counters, &hostv1.PortCount{Name: " +
			"\"refused.tomorrow\", Value: 1})\n\tfor _, n := range g.Base.Names("}},
	"internal/controller/inventory/inventory.go": {{"return []slice.Kind{", "return []slice.Kind{\"note\", "},
		{"\tfor _, t := range d.Templates {\n", "\tfor _, n := range d.Notes {\n\t\tput(\"note\", n.Name, n)\n\t}\n" +
			"\tfor _, t := range d.Templates {\n"}},
}

// laterPrograms are the paths of heddle and heddle-controller, built once for all tests of the process.
var laterPrograms = sync.OnceValues(func() (paths [2]string, err error) {
	dir, err := os.MkdirTemp("", "heddle-later-")
	if err != nil {
		return paths, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	replaced := map[string]string{}
	for file, edits := range laterEdits {
		path, text, err := edited(file, edits)
		if err != nil {
			return paths, err
		}
		replaced[path] = filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(replaced[path], []byte(text), 0o600); err != nil {
			return paths, err
		}
	}
	overlay := filepath.Join(dir, "overlay.json")
	b, err := json.Marshal(map[string]any{"Replace": replaced})
	if err == nil {
		err = os.WriteFile(overlay, b, 0o600)
	}
	for i, name := range []string{"heddle", "heddle-controller"} {
		if err == nil {
			paths[i], err = build(name, "-overlay", overlay)
		}
	}
	return paths, err
})

// edited is a source of this version with the edits, each of which must fit once.
func edited(file string, edits [][2]string) (path, text string, err error) {
	path, err = filepath.Abs(filepath.Join("../../..", file))
	if err != nil {
		return "", "", err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	text = string(b)
	for _, e := range edits {
		if n := strings.Count(text, e[0]); n != 1 {
			return "", "", fmt.Errorf("%s says %q %d times, want once: change laterEdits", file, e[0], n)
		}
		text = strings.Replace(text, e[0], e[1], 1)
	}
	return path, text, nil
}

// later gives the paths of the later version's programs.
func later(t *testing.T) [2]string {
	t.Helper()
	testkit.Tool(t, "go")
	paths, err := laterPrograms()
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// Later makes the next start one of a later version of the program, which knows the security field tomorrow and port
// groups' remark; Earlier takes it back.
func (h *Host) Later() { h.T.Helper(); h.binary = later(h.T)[0] }

// Earlier makes the next start one of this version again.
func (h *Host) Earlier() { h.T.Helper(); h.binary = program(h.T) }

// Later makes the next start one of a later version, which knows that field too, and objects that are notes; Earlier
// takes it back.
func (c *Controller) Later() { c.T.Helper(); c.binary = later(c.T)[1] }

// Earlier makes the next start one of this version again.
func (c *Controller) Earlier() {
	c.T.Helper()
	path, err := builtController()
	if err != nil {
		c.T.Fatal(err)
	}
	c.binary = path
}
