package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	optionsv1 "heddle/api/heddle/options/v1"
	"heddle/internal/platform/audit"
)

// Intercept holds each call against its rule and records it.
func (g *Guard) Intercept(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		rule, call := g.Rules.Of(spec.Procedure), callOf(spec.Procedure)
		c, _ := Of(ctx)
		by, err := c.may(rule)
		if err != nil {
			g.refuseCaller(c, call, asked(spec, stream), err)
			return Refused(err)
		}
		if !rule.Audit {
			return ended(ctx, next(ctx, spec, stream))
		}
		n := &notes{}
		ctx = context.WithValue(ctx, notesKey{}, n)
		var done func(error)
		r := &recorded{ServerStream: stream, begin: func(objects []string) (err error) {
			done, err = g.begin(ctx, c.entry(call, objects, by))
			return err
		}}
		err = ended(ctx, next(ctx, spec, r))
		if done != nil {
			done(err)
		}
		return err
	}
}

// ended is the error of a call; one that was cut off says why.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.Canceled) &&
		!errors.Is(cause, context.DeadlineExceeded) {
		return connect.NewError(connect.CodeUnauthenticated, cause.Error())
	}
	return err
}

// begin records that a call begins; done, what became of it.
func (g *Guard) begin(ctx context.Context, e audit.Entry) (done func(error), err error) {
	if g.Audit == nil {
		return func(error) {}, nil // a server that nobody calls but hosts
	}
	call, err := g.Audit.Begin(e)
	if err != nil {
		g.Log.Error("a call is not made", "call", e.Call, "err", err)
		return nil, connect.NewError(connect.CodeUnavailable, err.Error())
	}
	return func(err error) {
		result, why := audit.Done, ""
		if err != nil {
			result, why = audit.Failed, text(err)
		}
		if connect.CodeOf(err) == connect.CodePermissionDenied { // for one of its objects
			result = audit.Refused
		}
		g.count(result, 1)
		var objects []string
		if n, ok := ctx.Value(notesKey{}).(*notes); ok {
			objects = n.all()
		}
		g.Log.Info("audit", "who", e.Who, "from", e.From, "call", e.Call, "objects", e.Objects, "result", result, "why",
			why)
		if err := call.End(result, objects, why); err != nil {
			g.Log.Error("the audit log can't be written", "err", err)
		}
	}, nil
}

func text(err error) string {
	var e *connect.Error
	if errors.As(err, &e) {
		return e.Message()
	}
	return err.Error()
}

// recorded is a stream of which the first request is recorded before anybody acts on it.
type recorded struct {
	connect.ServerStream
	begin func(objects []string) error
	begun bool
}

// Receive reads a request.
func (r *recorded) Receive(msg any) error {
	if err := r.ServerStream.Receive(msg); err != nil {
		return err
	}
	if r.begun {
		return nil
	}
	r.begun = true
	return r.begin(objectsOf(msg))
}

// asked are the objects of a call that is refused.
func asked(spec connect.Spec, stream connect.ServerStream) []string {
	method, ok := spec.Schema.(protoreflect.MethodDescriptor)
	if !ok {
		return nil
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		return nil
	}
	msg := t.New().Interface()
	if err := stream.Receive(msg); err != nil && !errors.Is(err, io.EOF) {
		return nil // too long, or no request at all
	}
	return objectsOf(msg)
}

// longestValue is how much of one value is recorded, in bytes.
const longestValue = 120

// objectsOf is what a request asks for, field by field as name=value. Texts that are files are told by their length;
// fields that the schema marks as secret (debug_redact) are left out.
func objectsOf(msg any) (list []string) {
	m, ok := msg.(proto.Message)
	if !ok {
		return nil
	}
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() { // in the schema's order
		fd := fields.Get(i)
		if !m.ProtoReflect().Has(fd) {
			continue
		}
		if o, ok := fd.Options().(*descriptorpb.FieldOptions); ok && o.GetDebugRedact() {
			continue
		}
		list = append(list, string(fd.Name())+"="+valueOf(fd, m.ProtoReflect().Get(fd)))
	}
	return list
}

// valueOf is one value in a few words.
func valueOf(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	var s string
	switch {
	case fd.IsMap():
		var list []string
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			list = append(list, k.String()+":"+v.String())
			return true
		})
		slices.Sort(list)
		s = strings.Join(list, " ")
	case fd.IsList() && fd.Kind() == protoreflect.StringKind:
		var list []string
		for i := range v.List().Len() {
			list = append(list, v.List().Get(i).String())
		}
		s = strings.Join(list, " ")
	case fd.IsList():
		return fmt.Sprintf("%d of them", v.List().Len())
	case fd.Kind() == protoreflect.MessageKind:
		s = messageText(v.Message().Interface())
	case fd.Kind() == protoreflect.BytesKind:
		return fmt.Sprintf("%d bytes", len(v.Bytes()))
	case fd.Kind() == protoreflect.EnumKind:
		s = fmt.Sprint(v.Enum())
		if e := fd.Enum().Values().ByNumber(v.Enum()); e != nil {
			s = string(e.Name())
			if word, ok := proto.GetExtension(e.Options(), optionsv1.E_Text).(string); ok && word != "" {
				s = word
			}
		}
	default:
		s = v.String()
	}
	if len(s) > longestValue || strings.ContainsAny(s, "\n\r") {
		return fmt.Sprintf("%d bytes", len(s))
	}
	return s
}

func messageText(m proto.Message) string {
	switch m := m.(type) {
	case *durationpb.Duration:
		return m.AsDuration().String()
	case *timestamppb.Timestamp:
		return m.AsTime().Format(time.RFC3339)
	}
	return strings.Join(objectsOf(m), " ")
}
