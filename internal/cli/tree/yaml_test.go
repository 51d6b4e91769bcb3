package tree

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"heddle/internal/spec/yamltext"
	"heddle/internal/test/testkit"
)

// ambiguous returns texts that some version of YAML reads as something else, and numbers at the limits of what it reads
// as numbers.
func ambiguous() map[string]any {
	texts := []string{"", "~", "null", "NULL", "y", "N", "yes", "No", "NO", "on", "Off", "true", "False", "<<", "=",
		"1", "-1", "+1", "0", "007", "0o7", "0x10", "0b1",
		"1_000", "1e3", "1.0e+3", "1.", ".5", "-.5", ".inf", "-.INF", ".nan", "12:30", "12:30:00", "52:54:00:12:34:56",
		"02:00:00:00:01:01", "2026-11-22",
		"2026-11-22T10:00:00Z", "192.0.2.1", "192.0.2.1/24", "0x0806", "- a", "a: b", "a #b", "*a", "&a", "!a", "%a",
		"@a", "`a", "?", "-", "{}", "[]", "a\nb", " a ", "\t",
		"ü\u2028", "\x1b[31m", "vm1/eth0", "uplink1, uplink2", "802.1q"}
	doc := map[string]any{"texts": texts, "truth": []bool{true, false}, "nothing": nil,
		"numbers": []any{0, -1, 1.5, 1e21, 1e-7, -2.5e-9, 4096, uint64(1<<64 - 1), 600.0, 0.00425},
		"empty":   []any{[]string{}, map[string]int{}}}
	keys := map[string]any{}
	for i, k := range texts {
		keys[k] = i
	}
	doc["keys"] = keys
	return doc
}

// printed returns the listings in JSON and in YAML, and what is ambiguous.
func printed(t *testing.T) (asJSON, asYAML []string) {
	t.Helper()
	c := newConsole(t, furnished())
	for _, args := range listings() {
		asJSON = append(asJSON, c.must(append(args, "-o", "json")...))
		asYAML = append(asYAML, c.must(append(args, "-o", "yaml")...))
	}
	b, err := json.Marshal(ambiguous())
	if err != nil {
		t.Fatal(err)
	}
	y, err := yamltext.FromJSON(b)
	if err != nil {
		t.Fatal(err)
	}
	return append(asJSON, string(b)), append(asYAML, string(y))
}

// TestPyYAMLReadsTheOutputAsMeant: PyYAML, and so Ansible, reads YAML 1.1, in which no is false and 12:30 a number.
func TestPyYAMLReadsTheOutputAsMeant(t *testing.T) {
	asJSON, asYAML := printed(t)
	input, err := json.Marshal(map[string][]string{"json": asJSON, "yaml": asYAML})
	if err != nil {
		t.Fatal(err)
	}
	const script = `
import json, sys, yaml
def same(a, b):
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    number = lambda v: isinstance(v, (int, float)) and not isinstance(v, bool)
    return a == b and (type(a) == type(b) or number(a) and number(b))
def differ(a, b, at):
    if same(a, b): return
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for k in a: differ(a[k], b[k], at + "." + k)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i in range(len(a)): differ(a[i], b[i], at + "." + str(i))
    else: print(at, repr(a), "is read as", repr(b))
q = json.load(sys.stdin)
for i, (j, y) in enumerate(zip(q["json"], q["yaml"])):
    differ(json.loads(j), yaml.safe_load(y), str(i))
print("compared", len(q["json"]))
`
	out := string(testkit.RunPyYAML(t, script, input))
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 1 || lines[0] != "compared "+
		strconv.Itoa(len(asJSON)) {
		t.Errorf("PyYAML: %s", out)
	}
}

// scalars of YAML 1.1 that are no texts, as https://yaml.org/type/ defines them: without quotes, and in this order.
var oldScalars = []struct {
	tag  string
	form *regexp.Regexp
}{
	{"!!bool", regexp.MustCompile(
		`^(y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)},
	{"!!null", regexp.MustCompile(`^(~|null|Null|NULL|)$`)},
	{"!!int", regexp.MustCompile(
		`^([-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+)$`)},
	{"!!float", regexp.MustCompile(
		`^([-+]?([0-9][0-9_]*)?\.[0-9.]*([eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)},
	{"!!timestamp", regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?$`)},
	{"!!merge", regexp.MustCompile(`^<<$`)},
	{"!!value", regexp.MustCompile(`^=$`)},
}

// oldTag returns what a scalar is in YAML 1.1.
func oldTag(n *yaml.Node) string {
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return "!!str"
	}
	for _, s := range oldScalars {
		if s.form.MatchString(n.Value) {
			return s.tag
		}
	}
	return "!!str"
}

// TestOutputMeansTheSameInBothVersionsOfYAML compares each scalar of the YAML with that of the JSON, by the rules of
// YAML 1.1.
func TestOutputMeansTheSameInBothVersionsOfYAML(t *testing.T) {
	asJSON, asYAML := printed(t)
	checked := 0
	var walk func(want, got *yaml.Node)
	walk = func(want, got *yaml.Node) {
		if len(want.Content) != len(got.Content) {
			t.Fatalf("%q has %d parts, in YAML %d", want.Value, len(want.Content), len(got.Content))
		}
		if want.Kind == yaml.ScalarNode {
			checked++
			tag := "!!str"
			if want.Style == 0 { // JSON without quotes: the same in YAML 1.2
				tag = want.Tag
			}
			old := oldTag(got)
			number := strings.Contains("!!int !!float", tag) && strings.Contains("!!int !!float", old)
			if tag != old && !number {
				t.Errorf("%s, a %s, is a %s in YAML 1.1: %s", want.Value, tag, old, got.Value)
			}
		}
		for i := range want.Content {
			walk(want.Content[i], got.Content[i])
		}
	}
	for i := range asJSON {
		var want, got yaml.Node
		if err := yaml.Unmarshal([]byte(asJSON[i]), &want); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(asYAML[i]), &got); err != nil {
			t.Fatal(err)
		}
		walk(&want, &got)
	}
	if checked < 300 {
		t.Errorf("%d scalars were compared", checked)
	}
}
