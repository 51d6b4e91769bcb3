package cli

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"heddle/internal/spec/yamltext"
)

// Stream is the -o flag of a command that prints one object after the other.
type Stream struct{ Format string }

func streamFormats() []string { return []string{"text", "json", "yaml"} }

// Flag adds -o; more describes what JSON and YAML mean for the command in addition, "" for nothing.
func (s *Stream) Flag(c *cobra.Command, more string) {
	c.Flags().StringVarP(&s.Format, "output", "o", "text", "output format: text, json (one object a line) or "+
		"yaml (one document each)"+more)
	CompleteWords(c, "output", streamFormats())
}

func (s *Stream) Check() error {
	if slices.Contains(streamFormats(), s.Format) {
		return nil
	}
	return Usagef("output format %q: use %s", s.Format, AnyOf(streamFormats()))
}

// Text reports whether lines for people are printed.
func (s *Stream) Text() bool { return s.Format == "text" }

// Write prints one object, as a line of JSON or a document of YAML.
func (s *Stream) Write(w io.Writer, v any) error {
	if s.Format == "json" {
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
