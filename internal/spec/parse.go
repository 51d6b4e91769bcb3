package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v4"

	"heddle/internal/spec/printable"
)

// maxFile limits a configuration file, in bytes: a host with 1,000 ports needs some 200 KB.
const maxFile = 16 << 20

// maxDefinition limits a definition, in bytes: see maxDefinitionValues.
const maxDefinition = 32 << 20

// Load reads and parses the file at path. A wrong file gives Faults, an unreadable one the operating system's error.
func Load(path string) (*Config, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(filepath.ToSlash(path), data)
}

// ReadFile is the text of the file at path (see Text), but at most as much as Parse and ParseDefinition need to see
// that it is too large.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f)
}

// Read is ReadFile for a file that is already open.
func Read(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxDefinition+1))
	if err != nil || len(content) > maxDefinition {
		return content, err
	}
	return Text(content)
}

// TooLarge reports whether the content exceeds the size limit of a configuration file; then it may be incomplete.
func TooLarge(content []byte) bool { return len(content) > maxFile }

// TooLargeDefinition says why ParseDefinition does not read a definition because of its size, with the figures, ""
// where it is not too large. A definition that has more values than that, and still fewer marks of them, is not found
// here.
func TooLargeDefinition(text []byte) string {
	const advice = "leave out what is the default anyway, or divide the switches among several clusters"
	switch n := marks(text); {
	case len(text) > maxDefinition+1:
		return fmt.Sprintf("the definition has %.1f MiB, and a cluster's has at most %d MiB: %s",
			float64(len(text))/(1<<20), maxDefinition>>20, advice)
	case len(text) > maxDefinition: // who read it read no further
		return fmt.Sprintf("the definition has more than %d MiB, and a cluster's has at most that: %s",
			maxDefinition>>20,
			advice)
	case n > marksPerValue*maxDefinitionValues:
		return fmt.Sprintf("the definition has some %d values, and a cluster's has at most %d, which are some 130000 "+
			"port groups: %s", n/marksPerValue, maxDefinitionValues, advice)
	}
	return ""
}

// hasTooManyValues reports whether a text has more lines and marks that can begin a value than a file with MaxValues
// values needs. Such a text is not parsed, because parsing YAML takes some hundred bytes per value.
func hasTooManyValues(text []byte) bool { return marks(text) > marksPerValue*MaxValues }

// marks counts the lines and marks of a text that can begin a value.
func marks(text []byte) (n int) {
	for _, mark := range []string{"\n", ",", ":", "-", "[", "{", "?"} {
		n += bytes.Count(text, []byte(mark))
	}
	return n
}

// Parse reads one YAML document strictly and validates it. filename appears in the faults. The error is Faults with
// what is wrong, in the order of the file: the first 200, and how many more there are. A file without content declares
// nothing. Fields that are unknown or given twice, and values of the wrong type, are faults. On an error there is no
// Config.
func Parse(filename string, data []byte) (*Config, error) {
	fail := func(p position, msg string) (*Config, error) {
		return nil, Faults{{File: filename, Line: p.line, Column: p.column, Message: printable.Short(msg, maxMessage)}}
	}
	if msg := tooMuch(data); msg != "" {
		return nil, Faults{{File: filename, Message: msg, TooMuch: true}}
	}
	if msg := notUTF8(data); msg != "" {
		return fail(position{1, 1}, msg)
	}
	data = asYAML(data)
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return &Config{src: newSource(filename)}, nil
	case err != nil:
		p, msg := syntaxError(err)
		return fail(p, msg)
	}
	d := newDecoder(filename)
	cfg := &Config{src: d.src}
	d.document(&doc, cfg)
	d.rest(dec)
	d.src.ports = len(cfg.Ports)
	found := d.found
	if !d.src.bad[0] {
		found = cfg.checkRead(found)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	d.src.close(data, &doc, cfg.Ports)
	return cfg, nil
}

// tooMuch says why a file is not read at all, "" where it is.
func tooMuch(data []byte) string {
	switch {
	case TooLarge(data):
		return "larger than 16 MiB: a configuration file is at most that"
	case hasTooManyValues(data):
		return fmt.Sprintf("more lines and punctuation than %d values need: write a smaller file; a host can have at "+
			"most %d ports and uplinks", MaxValues, MaxMembers)
	}
	return ""
}

// notUTF8 says that a text is in an encoding that cannot be kept, "" where it is not: Read has converted it where it
// comes from a file.
func notUTF8(data []byte) string {
	if bytes.HasPrefix(data, []byte(markUTF16LE)) || bytes.HasPrefix(data, []byte(markUTF16BE)) {
		return "not UTF-8 but UTF-16: save the file as UTF-8"
	}
	return ""
}

// rest reports content after the first document.
func (d *decoder) rest(dec *yaml.Decoder) {
	var next yaml.Node
	err := dec.Decode(&next)
	switch {
	case errors.Is(err, io.EOF):
	case err != nil:
		p, msg := syntaxError(err)
		d.add(p, "", "", msg)
	default:
		d.add(position{next.Line, next.Column}, "", "",
			"a second YAML document: put everything into one, a configuration is one document")
	}
}

// syntaxError is the position and the text of an error of the YAML reader.
func syntaxError(err error) (position, string) {
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		return position{1, 1}, "not YAML: " + err.Error()
	}
	p := position{le.Mark.Line, le.Mark.Column}
	if p.line == 0 {
		p = position{1, 1}
	}
	msg := "not YAML: " + le.Message
	if le.ContextMsg != "" {
		msg += " " + le.ContextMsg
	}
	return p, msg
}
