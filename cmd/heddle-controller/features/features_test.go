package features

import (
	"path"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "heddle/api/heddle/controller/v1" // the contract whose calls are looked at
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/store"
)

// ofControllers are the services that hosts and other controllers call, by their certificates.
var ofControllers = []string{"HostService", "ControllerService"}

// peoplesCalls are the calls of the contract that people and tools make.
func peoplesCalls() (list []string) {
	protoregistry.GlobalFiles.RangeFilesByPackage("heddle.controller.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			if slices.Contains(ofControllers, string(s.Name())) {
				continue
			}
			for k := range s.Methods().Len() {
				list = append(list, "/"+string(s.FullName())+"/"+string(s.Methods().Get(k).Name()))
			}
		}
		return true
	})
	slices.Sort(list)
	return list
}

// Every call of the contract is in the table: somebody has thought about who may make it.
func TestRules_EveryCallHasOne(t *testing.T) {
	table, calls := List().Rules(), peoplesCalls()
	if len(calls) < 30 {
		t.Fatalf("the contract has %d calls: this test looks in the wrong place", len(calls))
	}
	for _, c := range calls {
		if _, ok := table[path.Base(c)]; !ok {
			t.Errorf("%s has no rule: write it down in access.Rules, or with its feature", c)
		}
	}
	for name := range table {
		if name != "metrics" && !slices.ContainsFunc(calls, func(c string) bool { return path.Base(c) == name }) {
			t.Errorf("there is a rule for %s, which is no call", name)
		}
	}
}

// The rules of features' calls: no feature changes one of the core, or of another feature, and a call that changes
// something is recorded.
func TestRules_OfFeatures(t *testing.T) {
	of := map[string]string{}
	for name := range access.Rules() {
		of[name] = "the core"
	}
	for _, f := range List() {
		for name, rule := range f.Rules {
			if other := of[name]; other != "" {
				t.Errorf("the call %s of feature %s is one of %s", name, f.Name, other)
			}
			of[name] = f.Name
			if reads := strings.HasPrefix(name, "List") || strings.HasPrefix(name, "Get"); rule.Audit == reads {
				t.Errorf("%s is recorded: %v", name, rule.Audit)
			}
		}
	}
	rules := List().Rules()
	for name, want := range map[string][]roles.Role{"ListStaticPorts": roles.With(roles.View),
		"ReleaseStaticPort": roles.With(roles.Operate), "SettleStaticPort": roles.With(roles.Operate)} {
		rule := rules[name]
		if len(rule.Needs) != 1 || !slices.Equal(roles.With(rule.Needs[0]), want) || !rule.Judged {
			t.Errorf("%s: %+v", name, rule)
		}
	}
}

// A kind of objects is one feature's, and says what bounds it.
func TestKinds_OfFeatures(t *testing.T) {
	of := map[store.Kind]string{}
	for _, f := range List() {
		for _, k := range f.Kinds {
			if other := of[k.Name]; other != "" || k.Bound == "" {
				t.Errorf("kind %s of feature %s: it is of feature %q too, or has no bound", k.Name, f.Name, other)
			}
			of[k.Name] = f.Name
		}
	}
}
