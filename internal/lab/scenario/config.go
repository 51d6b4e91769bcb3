package scenario

import (
	"reflect"

	"go.yaml.in/yaml/v4"

	"heddle/internal/spec"
)

// parseConfig reads a Heddle configuration into a *spec.Config.
func (p *parser) parseConfig(file string, data []byte, into reflect.Value) {
	var c spec.Config
	if err := yaml.Load(data, &c, yaml.WithKnownFields()); err != nil {
		p.faults = append(p.faults, Fault{File: file, Message: err.Error()})
		return
	}
	into.Set(reflect.ValueOf(&c))
}
