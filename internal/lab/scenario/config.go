package scenario

import (
	"errors"
	"reflect"

	"heddle/internal/spec"
)

// parseInto reads a Heddle configuration into a *spec.Config, or a definition into a *spec.Definition; its faults
// become this file's.
func (p *parser) parseInto(file string, data []byte, into reflect.Value) {
	var read any
	var err error
	if into.Type() == definitionType {
		read, err = spec.ParseDefinition(file, data)
	} else {
		read, err = spec.Parse(file, data)
	}
	var faults Faults
	switch {
	case errors.As(err, &faults):
		p.faults = append(p.faults, faults...)
	case err != nil:
		p.faults = append(p.faults, Fault{File: file, Message: err.Error()})
	default:
		into.Set(reflect.ValueOf(read))
	}
}
