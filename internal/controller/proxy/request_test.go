package proxy

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	agentv1 "heddle/api/heddle/agent/v1"
)

// A request that is passed on and has a field by a name that is none of the schema's is refused, whichever field it is.
func TestS134_ARequestThatIsPassedOnWithAMisspeltFieldIsRefused(t *testing.T) {
	seen := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("heddle.agent.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			for k := range f.Services().Get(i).Methods().Len() {
				in := f.Services().Get(i).Methods().Get(k).Input()
				kind, err := protoregistry.GlobalTypes.FindMessageByName(in.FullName())
				if err != nil {
					t.Fatal(err)
				}
				for n := range in.Fields().Len() {
					name := in.Fields().Get(n).JSONName()
					for _, wrong := range []string{name + "Of", strings.ToUpper(name)} {
						seen++
						body := fmt.Sprintf(`{%q:null}`, wrong)
						if Request("application/json", []byte(body), kind.New().Interface()) == nil {
							t.Errorf("%s takes %s", in.FullName(), body)
						}
					}
				}
			}
		}
		return true
	})
	if seen < 100 {
		t.Errorf("%d names were tried: this test looks in the wrong place", seen)
	}
	later := protowire.AppendVarint(protowire.AppendTag(nil, 900, protowire.VarintType), 1)
	if err := Request("application/proto", later, &agentv1.CaptureRequest{}); err == nil {
		t.Error("a field of a later version is ignored")
	}
	if err := answer("application/proto", later, &agentv1.CaptureResponse{}); err != nil {
		t.Errorf("a host that says more is not understood: %v", err)
	}
}
