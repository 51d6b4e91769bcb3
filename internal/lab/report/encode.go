package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"heddle/internal/spec/yamltext"
)

// Format is the output format of a report.
type Format string

// The formats of -o.
const (
	Table Format = "table"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// ParseFormat reads the value of an -o flag.
func ParseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case Table, JSON, YAML:
		return f, nil
	}
	return "", fmt.Errorf("output format %q: want table, json or yaml", s)
}

// Write writes the report in the given format, ending in a newline.
func (r *Report) Write(w io.Writer, format Format) error {
	switch format {
	case JSON:
		return r.writeJSON(w)
	case YAML:
		var b bytes.Buffer
		if err := r.writeJSON(&b); err != nil {
			return err
		}
		text, err := yamltext.FromJSON(b.Bytes())
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	case Table:
		return r.writeTable(w)
	}
	return fmt.Errorf("output format %q: want table, json or yaml", format)
}

func (r *Report) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r.complete())
}

// complete is the report with empty lists in place of nil ones: programs get [] and not null.
func (r *Report) complete() Report {
	c := *r
	if c.Rows == nil {
		c.Rows = []Row{}
	}
	if c.Budgets == nil {
		c.Budgets = []Budget{}
	}
	return c
}

// plain returns a field's value for programs: null if it was not measured.
func (f Field) plain() any {
	switch v := f.Value.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	case Spread:
		if v.Rounds == 0 {
			return nil
		}
	}
	return f.Value
}

// MarshalJSON writes the row as an object whose members keep their order.
func (r Row) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, f := range r {
		if f.TableOnly {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.plain())
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", f.Name, err)
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
