package wire

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/internal/plan"
)

// putFieldValue writes an effective value of a policy field in its type.
func putFieldValue(f plan.FieldValue) (*agentv1.PolicyValue, error) {
	switch v := f.Any().(type) {
	case bool:
		return &agentv1.PolicyValue{Kind: &agentv1.PolicyValue_Flag{Flag: v}}, nil
	case int:
		return &agentv1.PolicyValue{Kind: &agentv1.PolicyValue_Number{Number: int64(v)}}, nil
	case string:
		return &agentv1.PolicyValue{Kind: &agentv1.PolicyValue_Word{Word: valid(v)}}, nil
	case []string:
		return &agentv1.PolicyValue{Kind: &agentv1.PolicyValue_Words{Words: &agentv1.WordList{Words: validAll(v)}}}, nil
	case time.Duration:
		return &agentv1.PolicyValue{Kind: &agentv1.PolicyValue_Duration{Duration: durationpb.New(v)}}, nil
	case plan.VLAN:
		m, err := putVLAN(v)
		return &agentv1.PolicyValue{Kind: &agentv1.PolicyValue_Vlan{Vlan: m}}, err
	case plan.Members:
		m, err := putMembers(v)
		return &agentv1.PolicyValue{Kind: &agentv1.PolicyValue_Object{Object: m}}, err
	case []plan.Members:
		list := &agentv1.ConfigObjectList{}
		for _, o := range v {
			m, err := putMembers(o)
			if err != nil {
				return nil, err
			}
			list.Objects = append(list.Objects, m)
		}
		return &agentv1.PolicyValue{Kind: &agentv1.PolicyValue_Objects{Objects: list}}, nil
	}
	return nil, fmt.Errorf("a value of type %T can't be carried", f.Any())
}

// getFieldValue reads a value; a kind that only a newer agent knows gives no value.
func getFieldValue(m *agentv1.PolicyValue) (plan.FieldValue, error) {
	switch k := m.GetKind().(type) {
	case *agentv1.PolicyValue_Flag:
		return plan.FieldValueOf(k.Flag), nil
	case *agentv1.PolicyValue_Number:
		return plan.FieldValueOf(int(k.Number)), nil
	case *agentv1.PolicyValue_Word:
		return plan.FieldValueOf(k.Word), nil
	case *agentv1.PolicyValue_Words:
		return plan.FieldValueOf(append([]string{}, k.Words.GetWords()...)), nil
	case *agentv1.PolicyValue_Duration:
		return plan.FieldValueOf(k.Duration.AsDuration()), k.Duration.CheckValid()
	case *agentv1.PolicyValue_Vlan:
		v, err := getVLAN(k.Vlan)
		return plan.FieldValueOf(v), err
	case *agentv1.PolicyValue_Object:
		v, err := getMembers(k.Object)
		return plan.FieldValueOf(v), err
	case *agentv1.PolicyValue_Objects:
		list := []plan.Members{}
		for _, o := range k.Objects.GetObjects() {
			v, err := getMembers(o)
			if err != nil {
				return plan.FieldValue{}, err
			}
			list = append(list, v)
		}
		return plan.FieldValueOf(list), nil
	}
	return plan.FieldValue{}, nil
}

func putMembers(v plan.Members) (*agentv1.ConfigObject, error) {
	o := &agentv1.ConfigObject{}
	for _, m := range v {
		value, err := putFieldValue(m.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		o.Members = append(o.Members, &agentv1.ConfigMember{Name: valid(m.Name), Value: value})
	}
	return o, nil
}

func getMembers(o *agentv1.ConfigObject) (plan.Members, error) {
	v := plan.Members{}
	for _, m := range o.GetMembers() {
		value, err := getFieldValue(m.GetValue())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.GetName(), err)
		}
		v = append(v, plan.Member{Name: m.GetName(), Value: value})
	}
	return v, nil
}
