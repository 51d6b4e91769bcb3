package spec

import (
	"encoding/json"
	"errors"
	"io/fs"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestConfig_JSONReadsBack(t *testing.T) {
	for _, file := range cases(t, "good") {
		cfg, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var back Config
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*cfg, back, ignoreSource, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s\n%s", file, diff, text)
		}
		if err := back.Validate(); err != nil {
			t.Errorf("%s: read back, not valid: %v", file, err)
		}
	}
}

func TestLoad_AMissingFileIsTheOperatingSystemsError(t *testing.T) {
	if _, err := Load("testdata/none.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestValidate_AConfigurationMadeInMemoryHasFaultsWithoutLines(t *testing.T) {
	cfg := &Config{
		Switches: []Switch{{Name: "lab",
			PortGroups: []PortGroup{{Name: "web", Policy: Policy{VLAN: &VLAN{Access: 4095}}}}}},
		Ports: []Port{
			{Name: "vm1", Switch: "lab", PortGroup: "web"},
			{Name: "vm1", Switch: "lab", PortGroup: "web"},
		},
	}
	want := "switches[lab].portGroups[web].vlan.access: 4095: a VLAN id is 1–4094\n" +
		"ports[vm1].name: vm1: another port has this name: names of ports differ on a host"
	if err := cfg.Validate(); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	cfg.Switches[0].PortGroups[0].VLAN.Access = 1
	cfg.Ports = cfg.Ports[:1]
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	err := CheckPort(cfg, cfg.Ports[0])
	if err == nil || !strings.Contains(err.Error(), "the configuration declares a port of this name too") {
		t.Errorf("a second vm1: %v", err)
	}
}

func TestParse_ASecondDocumentIsNotReadEvenWhenBroken(t *testing.T) {
	_, err := Parse("two.yaml", []byte("switches: [{name: lab, mtu: 1}]\n---\n[\n"))
	var faults Faults
	if !errors.As(err, &faults) || len(faults) != 2 || faults[0].Line != 1 || !strings.HasPrefix(faults[1].Message,
		"not YAML: ") {
		t.Errorf("got %v, want a fault about the MTU and one about the second document", err)
	}
}

func TestParse_ALongValueIsShortenedAtALetter(t *testing.T) {
	_, err := Parse("long.yaml", []byte("switches: [{name: lab, kind: "+strings.Repeat("ü", 100)+"}]\n"))
	want := "long.yaml:1:30: switches[lab].kind: " + strings.Repeat("ü", maxShown/2) +
		"…: must be standard or distributed"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestReference_NamesEveryField(t *testing.T) {
	page := string(read(t, "../../docs/reference/configuration.md"))
	d := newDecoder("")
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(rt reflect.Type) {
		for rt.Kind() == reflect.Pointer || rt.Kind() == reflect.Slice {
			rt = rt.Elem()
		}
		if rt.Kind() != reflect.Struct || seen[rt] {
			return
		}
		seen[rt] = true
		fields := d.fieldsOf(rt)
		for _, name := range fields.names {
			if !regexp.MustCompile("[`.{ ]" + name + "[`.: ]").MatchString(page) {
				t.Errorf("configuration.md does not mention %s of %s", name, rt.Name())
			}
			walk(rt.FieldByIndex(fields.index[name]).Type)
		}
	}
	walk(reflect.TypeFor[Switch]())
	walk(reflect.TypeFor[Port]())
	if len(seen) < 10 {
		t.Errorf("only %d types seen", len(seen))
	}
}
