package wire

import (
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// special returns how types are carried that need a whole field.
func (c *Codec) special(t reflect.Type, fd protoreflect.FieldDescriptor) (link, bool) {
	if !fd.IsList() || fd.Message() == nil {
		return link{}, false
	}
	switch {
	case t == reflect.TypeFor[plan.VLANSet]() && is[*agentv1.VlanRange](fd):
		return vlanSet(), true
	case t == reflect.TypeFor[spec.Policy]() && is[*agentv1.PolicySetting](fd):
		return settings(), true
	}
	return link{}, false
}

// known returns how types are carried that have their own form in the schema.
func (c *Codec) known(t reflect.Type, fd protoreflect.FieldDescriptor) (scalar, bool) {
	if fd.Kind() == protoreflect.BytesKind {
		return octets(t)
	}
	if fd.Message() == nil {
		return scalar{}, false
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return converted(func(v time.Time) (*timestamppb.Timestamp, error) { return timestamppb.New(v), nil },
			func(m *timestamppb.Timestamp) (time.Time, error) { return m.AsTime(), m.CheckValid() }), true
	case reflect.TypeFor[time.Duration]():
		return converted(func(v time.Duration) (*durationpb.Duration, error) { return durationpb.New(v), nil },
			func(m *durationpb.Duration) (time.Duration, error) { return m.AsDuration(), m.CheckValid() }), true
	case reflect.TypeFor[plan.PortID]():
		return converted(func(v plan.PortID) (*agentv1.PortId, error) {
			return &agentv1.PortId{Switch: v.Switch, Name: v.Name}, nil
		},
			func(m *agentv1.PortId) (plan.PortID, error) {
				return plan.PortID{Switch: m.GetSwitch(), Name: m.GetName()}, nil
			}), true
	case reflect.TypeFor[netip.AddrPort]():
		return converted(func(v netip.AddrPort) (*agentv1.Endpoint, error) {
			return &agentv1.Endpoint{Address: v.Addr().AsSlice(), Port: uint32(v.Port())}, nil
		}, endpoint), true
	case reflect.TypeFor[plan.VLAN]():
		return converted(putVLAN, getVLAN), true
	case reflect.TypeFor[plan.FieldValue]():
		return converted(putFieldValue, getFieldValue), true
	}
	return scalar{}, false
}

// is reports whether a field has messages of that type.
func is[M protoreflect.ProtoMessage](fd protoreflect.FieldDescriptor) bool {
	var m M
	return fd.Message().FullName() == m.ProtoReflect().Descriptor().FullName()
}

// converted carries a type as a message of generated Go. A message that is not of generated Go, such as one of another
// version's schema, is written and read field by field.
func converted[T any, M protoreflect.ProtoMessage](to func(T) (M, error), from func(M) (T, error)) scalar {
	return scalar{
		to: func(v reflect.Value, _ protoreflect.Value) (protoreflect.Value, error) {
			m, err := to(v.Interface().(T))
			if err != nil {
				return protoreflect.Value{}, err
			}
			return protoreflect.ValueOfMessage(m.ProtoReflect()), nil
		},
		from: func(p protoreflect.Value, v reflect.Value) error {
			t, err := from(p.Message().Interface().(M))
			v.Set(reflect.ValueOf(t))
			return err
		},
	}
}

// octets carries bytes, as they are or as the bytes of an address.
func octets(t reflect.Type) (scalar, bool) {
	switch {
	case t == reflect.TypeFor[[]byte]():
		return bytesBy(reflect.Value.Bytes, func(b []byte, v reflect.Value) error {
			v.SetBytes(append([]byte{}, b...))
			return nil
		}), true
	case t == reflect.TypeFor[plan.MAC]():
		return bytesBy(func(v reflect.Value) []byte { m := v.Interface().(plan.MAC); return m[:] },
			func(b []byte, v reflect.Value) error {
				if len(b) != len(plan.MAC{}) {
					return fmt.Errorf("%d bytes are no MAC address", len(b))
				}
				v.Set(reflect.ValueOf(plan.MAC(b)))
				return nil
			}), true
	case t == reflect.TypeFor[netip.Addr]():
		return bytesBy(func(v reflect.Value) []byte { return v.Interface().(netip.Addr).AsSlice() },
			func(b []byte, v reflect.Value) error {
				a, err := address(b)
				v.Set(reflect.ValueOf(a))
				return err
			}), true
	case t.Kind() == reflect.String:
		return scalar{
			to: func(v reflect.Value, _ protoreflect.Value) (protoreflect.Value, error) {
				if mac, err := net.ParseMAC(v.String()); err == nil && len(mac) == len(plan.MAC{}) {
					return protoreflect.ValueOfBytes(mac), nil
				}
				a, err := netip.ParseAddr(v.String())
				if err != nil || a.Zone() != "" {
					return protoreflect.Value{}, fmt.Errorf("%q is no address", v.String())
				}
				return protoreflect.ValueOfBytes(a.AsSlice()), nil
			},
			from: func(p protoreflect.Value, v reflect.Value) error {
				if b := p.Bytes(); len(b) == len(plan.MAC{}) {
					v.SetString(plan.MAC(b).String())
					return nil
				}
				a, err := address(p.Bytes())
				v.SetString(a.String())
				return err
			},
		}, true
	}
	return scalar{}, false
}

func bytesBy(to func(reflect.Value) []byte, from func([]byte, reflect.Value) error) scalar {
	return scalar{
		to: func(v reflect.Value, _ protoreflect.Value) (protoreflect.Value, error) {
			return protoreflect.ValueOfBytes(to(v)), nil
		},
		from: func(p protoreflect.Value, v reflect.Value) error { return from(p.Bytes(), v) },
	}
}

func address(b []byte) (netip.Addr, error) {
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return a, fmt.Errorf("%d bytes are no IP address", len(b))
	}
	return a, nil
}

func endpoint(m *agentv1.Endpoint) (netip.AddrPort, error) {
	a, err := address(m.GetAddress())
	if err == nil && m.GetPort() > 65535 {
		err = fmt.Errorf("there is no port %d", m.GetPort())
	}
	return netip.AddrPortFrom(a, uint16(m.GetPort())), err
}
