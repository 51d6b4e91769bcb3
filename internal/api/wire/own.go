package wire

import (
	"reflect"
	"strings"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/internal/spec"
)

// PutPolicy returns what a port sets for itself, as its fields that are set.
func PutPolicy(p spec.Policy) (list []*agentv1.PolicySetting, err error) {
	err = putSettings(reflect.ValueOf(&p).Elem(), "", func(path string, value *agentv1.PolicyValue) {
		list = append(list, &agentv1.PolicySetting{Policy: path, Value: value})
	})
	return list, err
}

// GetPolicy is the policy that sets one field.
func GetPolicy(s *agentv1.PolicySetting) (p spec.Policy, err error) {
	err = getSetting(reflect.ValueOf(&p).Elem(), strings.Split(s.GetPolicy(), "."), s.GetValue())
	return p, err
}
