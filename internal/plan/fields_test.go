package plan

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/spec"
)

// leaves returns the paths of all fields of a policy in the file; the VLAN policy counts as one.
func leaves(t reflect.Type, prefix string) (paths []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if f.Type.Kind() == reflect.Struct {
			paths = append(paths, leaves(f.Type, prefix+name+".")...)
		} else {
			paths = append(paths, prefix+name)
		}
	}
	return paths
}

// values counts the effective values that a plan's policy has.
func values(t reflect.Type) (n int) {
	if t.Kind() != reflect.Struct {
		return 0
	}
	if _, is := t.FieldByName("From"); is {
		return 1
	}
	for i := range t.NumField() {
		n += values(t.Field(i).Type)
	}
	return n
}

func TestTheTableHasEveryPolicyField(t *testing.T) {
	var table []string
	ofUplinks := slices.DeleteFunc(leaves(reflect.TypeFor[spec.Uplink](), ""), func(path string) bool {
		return !strings.Contains(path, ".") // blocked belongs to uplinks, and is not a policy
	})
	flags := map[string]bool{}
	for _, f := range Fields() {
		table = append(table, f.Path)
		if f.Kind != KindVLAN && (f.Flag == "" || f.Usage == "" || flags[f.Flag]) {
			t.Errorf("%s: it needs a flag of its own, and its help", f.Path)
		}
		flags[f.Flag] = true
		if f.OfUplinks != slices.Contains(ofUplinks, f.Path) {
			t.Errorf("%s: an uplink of the file has the field: %v", f.Path, !f.OfUplinks)
		}
		if f.Values == "" || f.Default == "" || f.Meaning == "" {
			t.Errorf("%s: pages and heddle explain have to say what it does, its values and its default", f.Path)
		}
		if c := f.Category(); c != "" && !slices.Contains(spec.Categories(), c) {
			t.Errorf("%s: there is no category %s", f.Path, c)
		}
	}
	file := leaves(reflect.TypeFor[spec.Policy](), "")
	slices.Sort(file)
	sorted := slices.Sorted(slices.Values(table))
	if diff := cmp.Diff(file, sorted); diff != "" {
		t.Errorf("the file has other fields than the table: %s", diff)
	}
	if n := values(reflect.TypeFor[Effective]()); n != len(table) {
		t.Errorf("a plan's policy has %d values, and the table %d fields", n, len(table))
	}
}

// A word that a field cannot have is refused where the file is read, and every word that it can have is taken: a field
// whose words nobody checks would be read as if they were its default.
func TestEachFieldOfTheFileTakesItsWordsAlone(t *testing.T) {
	read := func(f Field, value string) error {
		policy := value
		keys := strings.Split(f.Path, ".")
		for _, key := range slices.Backward(keys) {
			policy = "{" + key + ": " + policy + "}"
		}
		at, ports := "{name: web, "+policy[1:], ""
		if f.PortOnly() {
			at, ports = "{name: web}", "\nports: [{name: vm, switch: s, portGroup: web, "+policy[1:]+"]"
		}
		_, err := spec.Parse("test.yaml", []byte("switches:\n  - name: s\n    uplinks: [{name: up, device: eno1}]\n"+
			"    portGroups: ["+at+"]"+ports+"\n"))
		return err
	}
	checked := 0
	for _, f := range Fields() {
		wrong := "perhaps"
		if f.Kind == KindList {
			wrong = "[perhaps]"
		}
		if err := read(f, wrong); err == nil {
			t.Errorf("%s: perhaps is taken", f.Path)
		}
		for _, word := range f.Words() {
			if f.Kind == KindList {
				word = "[" + word + "]"
			}
			checked++
			if err := read(f, word); err != nil {
				t.Errorf("%s: %s is refused: %v", f.Path, word, err)
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d words are checked", checked)
	}
}

// TestEachFieldReadsWhatItWrites: parsing sets exactly that field, and the plan has its value.
func TestEachFieldReadsWhatItWrites(t *testing.T) {
	examples := map[Kind][2]string{KindTruth: {"true", "false"}, KindAnswer: {"accept", "reject"},
		KindNumber: {"0", "7"}, KindDuration: {"1s", "2s"},
		KindChoice: {"x", "y"}, KindList: {"", "a,b"}}
	for _, f := range Fields() {
		if f.Kind == KindVLAN { // it is written as one of three fields
			continue
		}
		for _, text := range examples[f.Kind] {
			var p spec.Policy
			if _, set := f.Own(&p); set {
				t.Errorf("%s: set in an empty policy", f.Path)
			}
			if err := f.Parse(&p, text); err != nil {
				t.Errorf("%s: %q: %v", f.Path, text, err)
			}
			if got, set := f.Own(&p); !set || got != text {
				t.Errorf("%s: %q reads back as %q, %v", f.Path, text, got, set)
			}
			for _, other := range Fields() {
				if _, set := other.Own(&p); set != (other.Path == f.Path) {
					t.Errorf("%s sets %s", f.Path, other.Path)
				}
			}
			e := effective(&spec.Switch{}, []level{{FromPortGroup, &p}})
			want := strings.ReplaceAll(text, ",", ", ")
			if text == "" {
				want = "none"
			}
			if f.Value(e).String() != want || f.Level(e) != FromPortGroup {
				t.Errorf("%s: %q comes to %q from the %s", f.Path, text, f.Value(e), f.Level(e))
			}
		}
	}
	for path, bad := range map[string]string{"blocked": "perhaps", "security.macLearning.limit": "many", "vlan": "5"} {
		t.Run(path, func(t *testing.T) {
			f, _ := FieldOf(path)
			if err := f.Parse(&spec.Policy{}, bad); err == nil {
				t.Errorf("%s: %q is read", path, bad)
			}
		})
	}
}

func TestSettingsAreWrittenAsTheFileAndTheCommandTakeThem(t *testing.T) {
	for _, c := range []struct {
		settings   []Setting
		yaml, flag string
	}{
		{[]Setting{{"blocked", "false"}}, "blocked: false", "--blocked=false"},
		{[]Setting{{"security.macLearning.limit", "16"}}, "security: {macLearning: {limit: 16}}", "--mac-limit 16"},
		{[]Setting{{"teaming.active", "u1,u2"}}, "teaming: {active: [u1, u2]}", "--active u1,u2"},
		{[]Setting{{"security.macLearning.enabled", "true"}, {"security.macLearning.unicastFlooding", "true"}},
			"security: {macLearning: {enabled: true, unicastFlooding: true}}", "--mac-learning --unicast-flooding"},
		{[]Setting{{"security.promiscuous", "reject"}, {"security.macLearning.enabled", "true"}, {"blocked", "true"}},
			"security: {promiscuous: reject, macLearning: {enabled: true}}, blocked: true",
			"--promiscuous reject --mac-learning --blocked"},
	} {
		var flags []string
		for _, s := range c.settings {
			flags = append(flags, s.Flag())
		}
		if got := SettingsYAML(c.settings...); got != c.yaml || strings.Join(flags, " ") != c.flag {
			t.Errorf("%v: %q and %q, want %q and %q", c.settings, got, flags, c.yaml, c.flag)
		}
	}
}
