package spec

import "go.yaml.in/yaml/v4"

// Format writes the configuration in its canonical form: two spaces of indentation, fields in the order of the types,
// nothing that is not set, no comments. Parse reads it back to an equal Config. Two configurations that are written
// differently but mean the same have the same form, so that a diff of the forms shows real changes.
func Format(cfg *Config) ([]byte, error) { return yaml.Dump(cfg) }
