package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// released returns the methods of the last released contract.
func released(t *testing.T) (methods []protoreflect.MethodDescriptor) {
	t.Helper()
	b, err := os.ReadFile("../../api/contract.binpb")
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(b, set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			for m := range f.Services().Get(i).Methods().Len() {
				methods = append(methods, f.Services().Get(i).Methods().Get(m))
			}
		}
		return true
	})
	if len(methods) < 30 {
		t.Fatalf("the released contract has %d methods", len(methods))
	}
	return methods
}

func procedure(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}

// A program that knows only the released contract gets an answer from this agent to every call.
func TestAReleasedProgramIsAnswered(t *testing.T) {
	_, socket := serve(t, &echo{})
	c := connect.NewClient(connecthttp.NewTransport(&http.Client{Transport: versioned{dialer(socket)}}, "http://agent",
		connecthttp.WithCompressors()))
	for _, m := range released(t) {
		spec := connect.Spec{Schema: m, Procedure: procedure(m)}
		ask, answer := dynamicpb.NewMessage(m.Input()), dynamicpb.NewMessage(m.Output())
		if !m.IsStreamingServer() {
			if err := c.CallUnary(t.Context(), spec, ask, answer); err != nil {
				t.Errorf("%s: %v", spec.Procedure, err)
			}
			continue
		}
		spec.StreamType = connect.StreamTypeServer
		ctx, cancel := context.WithCancel(t.Context())
		s, err := c.CallServerStream(ctx, spec, ask)
		if err == nil {
			err = errors.Join(s.Receive(answer), s.Close())
		}
		if cancel(); err != nil {
			t.Errorf("%s: %v", spec.Procedure, err)
		}
	}
}

// A released agent answers with the fields that it knows, and this program can work with them.
func TestAReleasedAgentIsUnderstood(t *testing.T) {
	rpc := connect.NewServer()
	for _, m := range released(t) {
		kind := connect.StreamTypeUnary
		if m.IsStreamingServer() {
			kind = connect.StreamTypeServer
		}
		rpc.Register(connect.Method{Spec: connect.Spec{StreamType: kind, Schema: m, Procedure: procedure(m)},
			Handler: func(_ context.Context, _ connect.Spec, s connect.ServerStream) error {
				q := dynamicpb.NewMessage(m.Input())
				if err := s.Receive(q); err != nil {
					return err
				}
				return s.Send(dynamicpb.NewMessage(m.Output()))
			}})
	}
	mux := http.NewServeMux()
	connecthttp.Mount(mux, rpc, connecthttp.WithCompressors())
	c := answeredBy(t, mux)
	ctx := t.Context()
	for name, err := range map[string]error{
		"state": second(c.State(ctx)), "stats": second(c.Stats(ctx)), "accounts": second(c.Accounts(ctx)),
		"macs":    second(c.MACs(ctx)),
		"metrics": second(c.Metrics(ctx)), "apply": second(c.Apply(ctx, Apply{Content: "x"})),
		"move":  second(c.Move(ctx, Move{Port: "p"})),
		"trial": second(c.Trial(ctx)), "host ports": second(c.HostPorts(ctx)),
		"flows": second(c.Flows(ctx, FlowQuery{})), "stop": c.Stop(ctx),
		"events": c.Events(ctx, Follow{}, func(Events) error { return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			if err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
