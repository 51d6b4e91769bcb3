package cli

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"heddle/internal/spec/yamltext"
)

// stream is the -o flag of a command that prints one object after the other.
type stream struct{ format string }

func streamFormats() []string { return []string{"text", "json", "yaml"} }

// flag adds -o; more describes what JSON and YAML mean for the command in addition, "" for nothing.
func (s *stream) flag(c *cobra.Command, more string) {
	c.Flags().StringVarP(&s.format, "output", "o", "text", "output format: text, json (one object a line) or "+
		"yaml (one document each)"+more)
	completeWords(c, "output", streamFormats())
}

func (s *stream) check() error {
	if slices.Contains(streamFormats(), s.format) {
		return nil
	}
	return usagef("output format %q: use %s", s.format, anyOf(streamFormats()))
}

// text reports whether lines for people are printed.
func (s *stream) text() bool { return s.format == "text" }

// write prints one object, as a line of JSON or a document of YAML.
func (s *stream) write(w io.Writer, v any) error {
	if s.format == "json" {
		return json.NewEncoder(w).Encode(v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if b, err = yamltext.FromJSON(b); err != nil {
		return err
	}
	_, err = w.Write(append([]byte("---\n"), b...))
	return err
}
