package scenario

import (
	"errors"
	"reflect"

	"heddle/internal/spec"
)

// parseConfig reads a Heddle configuration into a *spec.Config; its faults become this file's.
func (p *parser) parseConfig(file string, data []byte, into reflect.Value) {
	c, err := spec.Parse(file, data)
	var faults Faults
	switch {
	case errors.As(err, &faults):
		p.faults = append(p.faults, faults...)
	case err != nil:
		p.faults = append(p.faults, Fault{File: file, Message: err.Error()})
	default:
		into.Set(reflect.ValueOf(c))
	}
}
