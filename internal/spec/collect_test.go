package spec

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// faultyPorts has two faults per port, one found by reading and one by checking, in two passes over the file.
func faultyPorts(n int) string {
	var b strings.Builder
	b.WriteString("switches:\n  - {name: s, portGroups: [{name: g}]}\nports:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: p%d, switch: s, portGroup: none%d, role: nobody, mtu: many}\n", i, i)
	}
	return b.String()
}

func TestParse_ReportsTheFirstFaultsAndHowManyMore(t *testing.T) {
	const ports = 5000
	_, err := Parse("f.yaml", []byte(faultyPorts(ports)))
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	if len(faults) != mostFaults+1 {
		t.Fatalf("%d faults are reported, want %d and a last line", len(faults), mostFaults)
	}
	_, err = Parse("f.yaml", []byte(faultyPorts(60)))
	var few Faults
	if !errors.As(err, &few) || len(few) != 180 {
		t.Fatalf("a file with 180 faults reports %d", len(few))
	}
	for i, f := range few {
		if faults[i] != f {
			t.Fatalf("fault %d is %v, want %v", i, faults[i], f)
		}
	}
	if got, want := faults[mostFaults].Error(), fmt.Sprintf("f.yaml: and %d more faults",
		3*ports-mostFaults); got != want {
		t.Errorf("the last line is %q, want %q", got, want)
	}
}

func TestCollection_KeepsTheFirstOfTheFile(t *testing.T) {
	const n = 3000
	c := collection{bounded: true}
	for _, line := range rand.Perm(n) {
		if p := (position{line + 1, 1}); c.takes(p) {
			c.add(Fault{File: "f", Line: p.line, Column: 1, Message: "m"})
		}
		if len(c.faults) >= 2*mostFaults {
			t.Fatalf("%d faults are kept", len(c.faults))
		}
	}
	var faults Faults
	if !errors.As(c.err(), &faults) || len(faults) != mostFaults+1 {
		t.Fatalf("got %d faults", len(faults))
	}
	for i := range mostFaults {
		if faults[i].Line != i+1 {
			t.Fatalf("fault %d is of line %d", i, faults[i].Line)
		}
	}
	if got := faults[mostFaults].Message; got != fmt.Sprintf("and %d more faults", n-mostFaults) {
		t.Error(got)
	}
}

// A file too large for one host's configuration is refused before the YAML is parsed, which takes much memory for each
// value.
func TestParse_RefusesMoreValuesThanAHostHasUseFor(t *testing.T) {
	for name, text := range map[string]string{
		"block": "switches: []\nports:\n" + strings.Repeat("  - {}\n", 2*MaxValues),
		"flow":  "switches: [" + strings.Repeat("a,", 2*MaxValues+1) + "]\n",
		"lists": "switches: " + strings.Repeat("[", 2*MaxValues+1),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(text))
			if err == nil || !strings.Contains(err.Error(),
				"more lines and punctuation than 200000 values need: write a smaller file") {
				t.Errorf("%s: %.300v", name, err)
			}
			if _, err2 := ParseAfter(&Config{src: &source{section: &section{}}}, "f.yaml", []byte(text)); err2 == nil ||
				err2.Error() != err.Error() {
				t.Errorf("%s: behind another file: %.300v", name, err2)
			}
		})
	}
}

// Messages about other things also quote names; they must not be long, or act on a terminal.
func TestFaults_MessagesArePrintableAndShort(t *testing.T) {
	for _, name := range []string{`\e[31mX`, `\e]0;pwn\a`, `\u202egnp.exe`, `\u0085x\u009b31m`, `a\nb`, `\u2066x`,
		strings.Repeat("long", 50_000)} {
		text := fmt.Sprintf(`
switches:
  - name: "%[1]s"
    kind: standard
    uplinks: [{name: "%[1]s"}, {name: "%[1]s"}]
    lags: [{name: "%[1]s", uplinks: [nobody]}]
    defaults: {teaming: {active: ["%[1]s", x], standby: ["%[1]s"]}, security: {macLearning: {enabled: true}}}
    portGroups: [{name: "%[1]s"}, {name: "%[1]s"}]
    "%[1]s": {}
  - {name: "%[1]s"}
ports:
  - {name: a, switch: "%[1]s", portGroup: none, "%[1]s": 1, mac: "%[1]s"}
  - {name: b, switch: "%[1]s", portGroup: "%[1]s", security: {promiscuous: accept}, addresses: ["%[1]s"]}
  - {name: b, switch: other, portGroup: "%[1]s", device: "%[1]s"}
`, name)
		_, err := Parse("f.yaml", []byte(text))
		var faults Faults
		if !errors.As(err, &faults) || len(faults) < 10 {
			t.Fatalf("%.20s: %.300v", name, err)
		}
		for _, f := range faults {
			for _, s := range []string{f.Path, f.Value, f.Message, f.Error()} {
				if len(s) > 1500 {
					t.Errorf("%.20s: a text of %d bytes: %.100s", name, len(s), s)
				}
				if i := strings.IndexFunc(s, func(r rune) bool {
					return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x2000 && r < 0x2070 && r != '–' && r != '…'
				}); i >= 0 {
					t.Errorf("%q holds a character that acts on a terminal", s)
				}
			}
		}
	}
}
