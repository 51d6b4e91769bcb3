package spec

import "testing"

// What a file says about switches follows from what was parsed, for a host and for a definition, and not from how
// comments, marks and blank lines look.
func TestS162_AFileWithoutAListOfSwitchesSaysNothing(t *testing.T) {
	for text, says := range map[string]bool{
		"": false, "\n": false, "# switches: [{name: lab}]\n": false, "---\n": false, "---\n# by a template\n": false,
		"\ufeff": false, "\ufeff# x\n": false, "switches:\n": false, "switches: null\n": false, "switches: ~": false,
		"switches:   # name, kind, portGroups\n": false, "switches: &name  # portGroups\n": false,
		"null\n": false, "{}\n": false, "%YAML 1.2\n---\n": false, "ports: []\n": false,
		"switches: []\n": true, "switches:\n- name: lab\n": true, `{"switches": []}`: true,
	} {
		cfg, err := Parse("f.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		def, err := ParseDefinition("f.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if cfg.ListsSwitches() != says || def.ListsSwitches() != says || cfg.Empty() == says {
			t.Errorf("%q says %v of a host, %v of a definition, want %v", text, cfg.ListsSwitches(),
				def.ListsSwitches(), says)
		}
		if nothing := cfg.TakesAwayUnasked(&Config{Switches: []Switch{{Name: "lab"}}}); nothing == says {
			t.Errorf("%q takes away unasked: %v", text, nothing)
		}
		if !DeclaresNothing([]byte(text)) != (len(cfg.Switches) > 0) || !DefinesNothing([]byte(text)) != (len(
			def.Switches) > 0) {
			t.Errorf("%q declares nothing: %v, defines nothing: %v", text, DeclaresNothing([]byte(text)),
				DefinesNothing([]byte(text)))
		}
	}
	// Settings of the host are something, and take no switch away where there is one.
	own, err := Parse("f.yaml", []byte("host: {macTable: 8192}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if own.Empty() || own.TakesAwayUnasked(&Config{}) || !own.TakesAwayUnasked(nil) ||
		!own.TakesAwayUnasked(&Config{Switches: []Switch{{Name: "lab"}}}) {
		t.Error("a file with settings of the host alone counts only where no switch would go")
	}
}
