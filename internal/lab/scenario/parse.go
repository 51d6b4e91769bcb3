package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"heddle/internal/spec"
)

// Fault and Faults are as for configurations: file:line:column, one line each.
type (
	Fault  = spec.Fault
	Faults = spec.Faults
)

var (
	configType     = reflect.TypeFor[*spec.Config]()
	definitionType = reflect.TypeFor[*spec.Definition]()
)

// Load reads a scenario file and the configuration files that it names. For a faulty scenario the error is Faults, with
// all of them.
func Load(file string) (*Scenario, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the scenario: %w", err)
	}
	return Parse(file, data, os.ReadFile)
}

// Parse reads a scenario from data; file is the name in the faults, and its folder that of configFile references. read
// opens those, and may be nil for a scenario that must not refer to files. The error is Faults.
func Parse(file string, data []byte, read func(string) ([]byte, error)) (*Scenario, error) {
	p := &parser{file: file, data: data, read: read}
	p.decoder = decoder{at: map[string]position{}, fault: p.faultAt, config: p.inlineConfig}
	var s Scenario
	if p.document(&s) {
		p.configFiles(&s)
		s.setDefaults()
		p.check(&s)
	}
	if len(p.faults) > 0 {
		slices.SortStableFunc(p.faults, func(a, b Fault) int {
			if a.Line != b.Line {
				return a.Line - b.Line
			}
			return a.Column - b.Column
		})
		return nil, p.faults
	}
	return &s, nil
}

type parser struct {
	decoder
	file   string
	data   []byte
	read   func(string) ([]byte, error)
	faults Faults
}

func (p *parser) faultAt(at position, format string, args ...any) {
	p.faults = append(p.faults, Fault{
		File: p.file, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...),
	})
}

// faultIn reports a fault at the value with this path, or at the nearest containing one in the file.
func (p *parser) faultIn(path, format string, args ...any) {
	for path != "" {
		if at, ok := p.at[path]; ok {
			p.faultAt(at, format, args...)
			return
		}
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	p.faultAt(p.at[""], format, args...)
}

// document decodes the one document of the file; false when there is nothing to check further.
func (p *parser) document(s *Scenario) bool {
	dec := yaml.NewDecoder(bytes.NewReader(p.data))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || (err == nil && len(doc.Content) == 0) {
		p.faultAt(position{}, "the file is empty; a scenario has at least a name and a list of hosts")
		return false
	}
	if err != nil {
		p.faultAt(position{}, "this is not YAML: %v", err)
		return false
	}
	p.value(doc.Content[0], reflect.ValueOf(s).Elem(), "")
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		p.faultAt(nodeAt(&second), "a second YAML document starts here; a scenario is one document")
	}
	return doc.Content[0].Kind == yaml.MappingNode
}

// inlineConfig reads a host's configuration or the definition, written in place. The parser of configurations gets the
// file with everything else blanked, so that its faults have positions in this file.
func (p *parser) inlineConfig(n *yaml.Node, _ string, into reflect.Value) {
	if n.Kind != yaml.MappingNode || n.Style&yaml.FlowStyle != 0 {
		p.faultAt(nodeAt(n), "a configuration is an indented block here; or name its file with configFile")
		return
	}
	p.parseInto(p.file, blockAt(p.data, n.Line, n.Column), into)
}

// blockAt is data with every line blanked that is not part of the block that begins at line and column.
func blockAt(data []byte, line, column int) []byte {
	lines := strings.Split(string(data), "\n")
	inside := true
	for i, l := range lines {
		text := strings.TrimLeft(l, " ")
		if i >= line && text != "" && text[0] != '#' && len(l)-len(text) < column-1 {
			inside = false
		}
		if i < line-1 || !inside {
			lines[i] = ""
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

// configFiles reads the configuration files that hosts and switches name, and the definition's.
func (p *parser) configFiles(s *Scenario) {
	for i := range s.Hosts {
		h := &s.Hosts[i]
		fileOf(p, fmt.Sprintf("hosts[%d].config", i), h.ConfigFile, &h.Config)
	}
	for i := range s.Switches {
		sw := &s.Switches[i]
		fileOf(p, fmt.Sprintf("switches[%d].config", i), sw.ConfigFile, &sw.Config)
	}
	fileOf(p, "definition", s.DefinitionFile, &s.Definition)
}

// fileOf reads the file that stands in place of the field at path.
func fileOf[T spec.Config | spec.Definition](p *parser, path, name string, into **T) {
	if name == "" {
		return
	}
	field := path[strings.LastIndexByte(path, '.')+1:]
	if *into != nil {
		p.faultIn(path+"File", "there is a %s beside it; keep one of the two", field)
		return
	}
	if p.read == nil {
		p.faultIn(path+"File", "this scenario can't refer to files; write the content in place, as %s", field)
		return
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(p.file), name)
	}
	data, err := p.read(name)
	if err != nil {
		p.faultIn(path+"File", "%v", err)
		return
	}
	p.parseInto(name, data, reflect.ValueOf(into).Elem())
}
