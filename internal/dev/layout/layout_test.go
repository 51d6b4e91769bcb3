package layout

import (
	"slices"
	"strings"
	"testing"
)

func TestPackagesStandOnTheirFloors(t *testing.T) {
	packages, err := Read("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 60 {
		t.Fatalf("%d packages read", len(packages))
	}
	for _, fault := range Faults(packages) {
		t.Error(fault)
	}
}

// A hypervisor carries nothing that it doesn't use: etcd costs each process that links it 11 MB of memory.
func TestTheAgentCarriesNoEtcd(t *testing.T) {
	packages, err := Read("../../..")
	if err != nil {
		t.Fatal(err)
	}
	etcd := func(name string) bool { return strings.HasPrefix(name, "go.etcd.io/") }
	seen := 0
	for _, p := range packages {
		switch {
		case p.Path == "cmd/heddle" && slices.ContainsFunc(p.Foreign, etcd):
			t.Errorf("%s reaches %s", p.Path, p.Foreign[slices.IndexFunc(p.Foreign, etcd)])
		case p.Path == "cmd/heddle" || p.Path == "internal/platform/store" && slices.ContainsFunc(p.Foreign, etcd):
			seen++
		}
	}
	if seen != 2 {
		t.Error("the program and the store that links etcd are not both found: this test is void")
	}
}

func TestFaultsAreFound(t *testing.T) {
	rules := map[string]Rule{"internal/low": {Floor: 0, Pure: true}, "internal/a": {Floor: 2},
		"internal/a/b": {Floor: 2}, "internal/a/high": {Floor: 4},
		"internal/c": {Floor: 2}, "internal/model": {Floor: 3}, "internal/dataplane": {Floor: 2}}
	for _, c := range []struct {
		what string
		p    Package
		want string
	}{
		{"down", Package{Path: "internal/a", Imports: []string{"internal/low"}}, ""},
		{"within the room", Package{Path: "internal/a/b", Imports: []string{"internal/a"}}, ""},
		{"upward within the room", Package{Path: "internal/a/b", Imports: []string{"internal/a/high"}},
			"internal/a/b (floor 2) imports internal/a/high (floor 4)"},
		{"across", Package{Path: "internal/a", Imports: []string{"internal/c"}},
			"internal/a (floor 2) imports internal/c (floor 2)"},
		{"upward", Package{Path: "internal/low", Imports: []string{"internal/a"}},
			"internal/low (floor 0) imports internal/a (floor 2)"},
		{"unlisted", Package{Path: "internal/new"}, "internal/new has no floor"},
		{"impure", Package{Path: "internal/low", Foreign: []string{"github.com/cilium/ebpf/link"}},
			"internal/low is to be pure, and reaches github.com/cilium/ebpf/link"},
		{"a kin of a name", Package{Path: "internal/low", Foreign: []string{"github.com/cilium/ebpfs"}}, ""},
		{"model", Package{Path: "internal/model", Imports: []string{"internal/dataplane"}},
			"the model knows the dataplane"},
	} {
		t.Run(c.what, func(t *testing.T) {
			all := []Package{c.p}
			for path, r := range rules {
				if path == c.p.Path {
					all[0].Rule = &r
				} else {
					all = append(all, Package{Path: path, Rule: &r})
				}
			}
			got := Faults(all)
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestFeaturesKnowEachOtherByWords(t *testing.T) {
	for _, c := range []struct {
		p, imports string
		may        bool
	}{
		{"internal/feature/migration/host", "internal/feature/migration", true},
		{"internal/feature/migration/host", "internal/agent", true},
		{"internal/feature/migration/fleet", "internal/feature/rollout", true},
		{"internal/feature/migration/fleet", "internal/feature/rollout/fleet", false},
		{"internal/agent/cluster", "internal/feature/migration", false},
		{"internal/controller", "internal/feature/migration/fleet", false},
		{"internal/platform/store", "internal/feature/migration", false},
		{"internal/platform/store", "internal/spec", false},
		{"internal/platform/store", "internal/host/ownfile", true},
		{"internal/web", "internal/controller/rpc", false},
		{"internal/web", "internal/api", true},
		{"internal/agents", "internal/feature/migration", true},
		{"cmd/heddle", "internal/feature/migration/host", true},
	} {
		p := Package{Path: c.p, Imports: []string{c.imports}}
		if got := p.strange(); (len(got) == 0) != c.may {
			t.Errorf("%s imports %s: %q", c.p, c.imports, got)
		}
	}
}

func TestFloorsAreReadAsWritten(t *testing.T) {
	for said, want := range map[string]Rule{"words": {Words, false}, "kernel pure": {Kernel, true},
		"top": {Top, false}} {
		if got, err := parseRule(said); err != nil || *got != want {
			t.Errorf("%q: %v, %v", said, got, err)
		}
	}
	for _, said := range []string{"", "cellar", "words clean", "words pure pure", "Words"} {
		if got, err := parseRule(said); err == nil {
			t.Errorf("%q: %v", said, got)
		}
	}
}

func TestSentence(t *testing.T) {
	for doc, want := range map[string]string{
		"Package spec is the file: types.":          "the file: types",
		"Package x says why. It is pure.":           "says why",
		"Heddle is a switch: the agent, and more.":  "Heddle is a switch: the agent, and more",
		"Command docgen writes pages":               "writes pages",
		"Package long says\nwhat is on two lines.":  "says what is on two lines",
		"Package v has 1.5 parts of it. And others": "has 1.5 parts of it",
	} {
		if got := sentence(doc); got != want {
			t.Errorf("%q gives %q, want %q", doc, got, want)
		}
	}
}

// Each part of a feature stands on the room that it is added to; lists of features are for tests and tools alone.
func TestPartsOfFeaturesStandOnTheirRooms(t *testing.T) {
	for _, c := range []struct {
		from, to string
		may      bool
	}{
		{"internal/feature/migration/host", "internal/agent/part", true},
		{"internal/feature/migration/fleet", "internal/controller/part", true},
		{"internal/feature/migration/cmd", "internal/cli", true},
		{"internal/feature/migration/host", "internal/controller", false},
		{"internal/feature/migration", "internal/agent", false},
		{"internal/dev/docgen", "cmd/heddle/features", true},
		{"internal/test/host", "cmd/heddle/features/hosts", true},
		{"internal/dev/docgen", "cmd/heddle", false},
	} {
		p := &Package{Path: c.from}
		if got := p.standsOn(c.to); got != c.may {
			t.Errorf("%s may import %s of its own floor: %v", c.from, c.to, got)
		}
	}
}
