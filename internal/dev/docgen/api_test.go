package docgen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func TestSchemaComments(t *testing.T) {
	got := map[string]string{}
	err := schemaComments("a.proto", `syntax = "proto3";

// A comment by itself.

// PortService makes
// ports.
service PortService {
  // Make makes one.
  rpc Make(MakeRequest) returns (stream MakeResponse);
}

// MakeRequest asks.
//
// It may be empty.
message MakeRequest {}

// Port is one.
message Port {
  // name is its name.
  string name = 1;
  repeated string addresses = 2 [json_name = "ips"];
  // more by name
  map<string, int32> more = 3;
  oneof kind {
    // flag is one
    bool flag = 4;
  }
  // last
  optional State last = 5;
}

enum State {
  // it works
  STATE_UP = 1 [(heddle.options.v1.text) = "up"];
}
`, got)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"PortService": "PortService makes ports.", "PortService.Make": "Make makes one.",
		"MakeRequest": "MakeRequest asks.\n\nIt may be empty.",
		"Port":        "Port is one.", "Port.name": "name is its name.", "Port.addresses": "",
		"Port.more": "more by name",
		"Port.kind": "", "Port.flag": "flag is one", "Port.last": "last", "State": "", "State.STATE_UP": "it works",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	err = schemaComments("b.proto", "// A is one.\nmessage A {\n  string a = 1; // beside it\n}\n", got)
	if err == nil || !strings.Contains(err.Error(), "b.proto:3") {
		t.Errorf("a comment beside a field, which the page would not show: error %v", err)
	}
}

func TestTells(t *testing.T) {
	for comment, want := range map[string]bool{
		"from and to are the value before and after": true,
		"port has the to":      false,
		"word is of the to's":  false,
		"into and tomorrow":    false,
		"from; to what is not": true,
	} {
		t.Run(comment, func(t *testing.T) {
			if got := tells(comment, "to"); got != want {
				t.Errorf("tells %v, want %v", got, want)
			}
		})
	}
}

// TestEveryDeclarationIsRead: what the scanner of comments knows and what is compiled into the program are the same
// declarations, so that none loses its comment by how it is written.
func TestEveryDeclarationIsRead(t *testing.T) {
	for _, s := range schemas() {
		t.Run(string(s.pkg), func(t *testing.T) { everyDeclarationIsRead(t, s) })
	}
}

func everyDeclarationIsRead(t *testing.T, s schema) {
	t.Helper()
	known, err := readComments(root, s)
	if err != nil {
		t.Fatal(err)
	}
	declarations := 0
	has := func(name ...protoreflect.Name) {
		declarations++
		parts := make([]string, len(name))
		for i := range name {
			parts[i] = string(name[i])
		}
		if _, ok := known[strings.Join(parts, ".")]; !ok {
			t.Errorf("%s is not read", strings.Join(parts, "."))
		}
	}
	for _, f := range apiFiles(s) {
		for i := range f.Services().Len() {
			service := f.Services().Get(i)
			has(service.Name())
			for j := range service.Methods().Len() {
				has(service.Name(), service.Methods().Get(j).Name())
			}
		}
		for i := range f.Messages().Len() {
			m := f.Messages().Get(i)
			has(m.Name())
			for j := range m.Fields().Len() {
				has(m.Name(), m.Fields().Get(j).Name())
			}
			inside := m.Enums().Len()
			for j := range m.Messages().Len() {
				if !m.Messages().Get(j).IsMapEntry() {
					inside++
				}
			}
			if inside > 0 {
				t.Errorf("%s has %d declarations inside that the page does not show", m.Name(), inside)
			}
		}
		for i := range f.Enums().Len() {
			e := f.Enums().Get(i)
			has(e.Name())
			for j := range e.Values().Len() {
				has(e.Name(), e.Values().Get(j).Name())
			}
		}
	}
	least := map[protoreflect.FullName]int{"heddle.agent.v1": 500, "heddle.controller.v1": 80,
		"heddle.host.v1": 20}[s.pkg]
	if least == 0 || declarations < least {
		t.Errorf("only %d declarations", declarations)
	}
}
