package spec

import "go.yaml.in/yaml/v4"

// Format writes the configuration in its canonical form: two spaces of indentation, fields in the order of the types,
// nothing that is not set, no comments. Parse reads it back to an equal Config; two configurations that are written
// differently and mean the same to the reader have the same form, so that a diff of the forms shows what changes.
func Format(cfg *Config) ([]byte, error) { return yaml.Dump(cfg) }
