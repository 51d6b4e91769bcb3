package wire

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/reflect/protoreflect"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/internal/plan"
)

// lastVLAN is the highest VLAN ID; 0 stands for untagged frames.
const lastVLAN = 4094

// vlanSet carries a set of VLANs as its ranges.
func vlanSet() link {
	return link{
		put: func(v reflect.Value, m protoreflect.Message, fd protoreflect.FieldDescriptor) error {
			list := m.Mutable(fd).List()
			for _, r := range ranges(v.Interface().(plan.VLANSet)) {
				list.Append(protoreflect.ValueOfMessage(r.ProtoReflect()))
			}
			return nil
		},
		get: func(m protoreflect.Message, fd protoreflect.FieldDescriptor, v reflect.Value) error {
			var all []*agentv1.VlanRange
			list := m.Get(fd).List()
			for i := range list.Len() {
				all = append(all, list.Get(i).Message().Interface().(*agentv1.VlanRange))
			}
			s, err := set(all)
			v.Set(reflect.ValueOf(s))
			return err
		},
	}
}

func ranges(s plan.VLANSet) (out []*agentv1.VlanRange) {
	for _, r := range s.Ranges() {
		out = append(out, &agentv1.VlanRange{First: uint32(r.First), Last: uint32(r.Last)})
	}
	return out
}

func set(list []*agentv1.VlanRange) (s plan.VLANSet, err error) {
	for _, r := range list {
		if r.GetFirst() > r.GetLast() || r.GetLast() > lastVLAN {
			return s, fmt.Errorf("there is no range of VLANs %d-%d", r.GetFirst(), r.GetLast())
		}
		s.AddRange(uint16(r.GetFirst()), uint16(r.GetLast()))
	}
	return s, nil
}

func putVLAN(v plan.VLAN) (*agentv1.VlanPolicy, error) {
	switch v.Mode {
	case plan.VLANAccess:
		return &agentv1.VlanPolicy{Mode: agentv1.VlanMode_VLAN_MODE_ACCESS, Access: uint32(v.ID)}, nil
	case plan.VLANTrunk:
		outer := agentv1.TagProtocol_TAG_PROTOCOL_DOT1Q
		if v.AD {
			outer = agentv1.TagProtocol_TAG_PROTOCOL_DOT1AD
		}
		return &agentv1.VlanPolicy{Mode: agentv1.VlanMode_VLAN_MODE_TRUNK, Trunk: ranges(v.Set), Outer: outer}, nil
	}
	return &agentv1.VlanPolicy{Mode: agentv1.VlanMode_VLAN_MODE_NONE}, nil
}

func getVLAN(m *agentv1.VlanPolicy) (plan.VLAN, error) {
	switch m.GetMode() {
	case agentv1.VlanMode_VLAN_MODE_NONE, agentv1.VlanMode_VLAN_MODE_UNSPECIFIED:
		return plan.VLAN{}, nil
	case agentv1.VlanMode_VLAN_MODE_ACCESS:
		if m.GetAccess() < 1 || m.GetAccess() > lastVLAN {
			return plan.VLAN{}, fmt.Errorf("there is no VLAN %d", m.GetAccess())
		}
		return plan.VLAN{Mode: plan.VLANAccess, ID: uint16(m.GetAccess())}, nil
	case agentv1.VlanMode_VLAN_MODE_TRUNK:
		s, err := set(m.GetTrunk())
		return plan.VLAN{Mode: plan.VLANTrunk, Set: s, AD: m.GetOuter() == agentv1.TagProtocol_TAG_PROTOCOL_DOT1AD}, err
	}
	return plan.VLAN{Mode: plan.VLANUnknown}, nil
}
