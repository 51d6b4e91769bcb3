package access

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// What lets somebody in is marked as such in the contract: the audit log leaves it out.
func TestObjects_SecretsAreMarked(t *testing.T) {
	names := map[string]string{ // and what else is called so
		"heddle.controller.v1.AuditEntry.token": "the id of a token",
	}
	secrets := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("heddle.controller.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Messages().Len() {
			fields := f.Messages().Get(i).Fields()
			for j := range fields.Len() {
				fd := fields.Get(j)
				if !slices.Contains([]string{"token", "secret", "password"}, string(fd.Name())) ||
					names[string(fd.FullName())] != "" {
					continue
				}
				secrets++
				if o, ok := fd.Options().(*descriptorpb.FieldOptions); !ok || !o.GetDebugRedact() {
					t.Errorf("%s is not marked as a secret (debug_redact)", fd.FullName())
				}
			}
		}
		return true
	})
	if secrets < 6 {
		t.Errorf("%d secrets", secrets)
	}
	got := objectsOf(&controllerv1.JoinClusterRequest{Token: "hc1.secret", Name: "c2"})
	if text := strings.Join(got, " "); text != "name=c2" {
		t.Errorf("recorded is %q", text)
	}
}
