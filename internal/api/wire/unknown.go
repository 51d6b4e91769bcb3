package wire

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Unknown returns the name of a field or value in a request that the schema does not have, "" for none.
func Unknown(m proto.Message) string { return unknown(m.ProtoReflect()) }

// unknown returns the name of a field or value of a message that the schema does not have, "" for none.
func unknown(m protoreflect.Message) (what string) {
	if b := m.GetUnknown(); len(b) > 0 {
		return "a field of " + string(m.Descriptor().Name())
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
		case fd.IsList():
			for i := range v.List().Len() {
				if what == "" {
					what = unknownValue(fd, v.List().Get(i))
				}
			}
		default:
			what = unknownValue(fd, v)
		}
		return what == ""
	})
	return what
}

func unknownValue(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch {
	case fd.Message() != nil:
		return unknown(v.Message())
	case fd.Enum() != nil && fd.Enum().Values().ByNumber(v.Enum()) == nil:
		return fmt.Sprintf("value %d of %s", v.Enum(), fd.JSONName())
	}
	return ""
}
