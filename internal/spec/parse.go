package spec

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v4"
)

// maxFile bounds a configuration file, in bytes: a host with 1,000 ports needs some 200 KB.
const maxFile = 16 << 20

// Load reads and parses the file at path. A wrong file gives Faults, an unreadable one the operating system's error.
func Load(path string) (*Config, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(filepath.ToSlash(path), data)
}

// ReadFile is the content of the file at path, as far as Parse needs it to say that it is too large.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f)
}

// Read is ReadFile for what is open already.
func Read(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, maxFile+1)) }

// TooLarge says whether that is more than a configuration file may be, and so perhaps not all of it.
func TooLarge(content []byte) bool { return len(content) > maxFile }

// Parse reads one YAML document strictly and validates it. The error is Faults with everything that is wrong, in the
// order of the file; filename is what they carry. Fields that are unknown or given twice, and values of the wrong type,
// are faults. On an error there is no Config.
func Parse(filename string, data []byte) (*Config, error) {
	fail := func(p position, msg string) (*Config, error) {
		return nil, Faults{{File: filename, Line: p.line, Column: p.column, Message: msg}}
	}
	if TooLarge(data) {
		return fail(position{}, "larger than 16 MiB: a configuration file is at most that")
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return fail(position{1, 1}, "the file is empty: it needs at least a switch, under switches:")
	case err != nil:
		p, msg := syntaxError(err)
		return fail(p, msg)
	}
	d := newDecoder(filename)
	cfg := &Config{src: d.src}
	d.document(&doc, cfg)
	d.rest(dec)
	d.src.ports = len(cfg.Ports)
	faults := d.faults
	if !d.src.bad[0] {
		faults = append(faults, cfg.check(true)...)
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	d.src.close(data, &doc, cfg.Ports)
	return cfg, nil
}

// rest reports what follows the first document.
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

// syntaxError is the place and the text of what the YAML reader could not read.
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
