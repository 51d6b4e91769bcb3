package access

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	_ "heddle/api/heddle/agent/v1" // the contracts of which the messages are looked at
	controllerv1 "heddle/api/heddle/controller/v1"
)

// secretNames are those of fields that have what opens something.
var secretNames = []string{"token", "secret", "password"}

// The audit log and the log have what a call asks for, and never what lets somebody in.
func TestObjectsOf_LeavesSecretsOut(t *testing.T) {
	const secret = "hc1.abcdefgh.verysecret"
	asked := &controllerv1.JoinClusterRequest{Controller: "c1:7411", Token: secret, Name: "c2"}
	got := strings.Join(objectsOf(asked), " ")
	if got != "controller=c1:7411 name=c2" {
		t.Errorf("recorded: %s", got)
	}
}

// A field by the name of a secret is marked as one, in all messages of the contracts.
func TestTheContractMarksItsSecrets(t *testing.T) {
	seen := 0
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if !strings.HasPrefix(string(file.Package()), "heddle.") {
			return true
		}
		for i := range file.Messages().Len() {
			seen += unmarked(t, file.Messages().Get(i))
		}
		return true
	})
	if seen < 6 {
		t.Errorf("the messages have %d secrets: this test looks in the wrong place", seen)
	}
}

func unmarked(t *testing.T, m protoreflect.MessageDescriptor) (seen int) {
	t.Helper()
	for i := range m.Messages().Len() {
		seen += unmarked(t, m.Messages().Get(i))
	}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		for _, name := range secretNames {
			if f.Name() != protoreflect.Name(name) || f.FullName() == "heddle.controller.v1.AuditEntry.token" {
				continue // of an entry it is the token's id
			}
			seen++
			if o, ok := f.Options().(*descriptorpb.FieldOptions); !ok || !o.GetDebugRedact() {
				t.Errorf("%s is not marked with debug_redact: it is recorded", f.FullName())
			}
		}
	}
	return seen
}
