package api

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// understood returns an error unless everything in a request is known here. A command that is newer than its agent may
// request more than the agent knows; if the agent did only the rest, it would not do what was requested.
func understood(m any) error {
	p, ok := m.(proto.Message)
	if !ok {
		return nil
	}
	if what := unknown(p.ProtoReflect()); what != "" {
		return NewError(Invalid, fmt.Sprintf("this agent does not know %s, which the command asks for: the agent is "+
			"older than the command; restart it with the same program", what))
	}
	return nil
}

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
