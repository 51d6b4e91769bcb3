package explain

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"heddle/internal/abi"
	"heddle/internal/diagnose/advise"
	"heddle/internal/spec"
)

func TestEveryTopicIsWhole(t *testing.T) {
	seen := map[Kind]map[string]bool{Reason: {}, Field: {}, Rule: {}}
	for _, x := range Topics() {
		if seen[x.Kind][x.Name] {
			t.Errorf("%s %s is there twice", x.Kind, x.Name)
		}
		seen[x.Kind][x.Name] = true
		if x.Name == "" || !strings.HasSuffix(x.Meaning, ".") && !strings.HasSuffix(x.Meaning, "?") || x.Command == "" {
			t.Errorf("%+v", x)
		}
		switch {
		case x.Kind == Reason && (x.About == "" || x.Counted == "" || x.Fix == ""),
			x.Kind == Field && (x.Values == "" || x.Default == ""),
			x.Kind == Rule && (x.Level == "" || x.Sign == "" || x.Consequence == "" || x.Fix == ""):
			t.Errorf("%s %s lacks something: %+v", x.Kind, x.Name, x)
		}
		if text := x.Values + x.Default + x.Sign; strings.ContainsAny(text, "`") || strings.Contains(text, "](") {
			t.Errorf("%s %s is marked as a page is: %s", x.Kind, x.Name, text)
		}
	}
	for r := range abi.Reasons() {
		if !seen[Reason][r.String()] {
			t.Errorf("reason %s is not explained", r)
		}
	}
	for _, r := range advise.Rules() {
		if r.About == "" || r.Sign == "" || r.Why == "" || r.Fix == "" {
			t.Errorf("rule %s: a text is empty: %+v", r.ID, r)
		}
	}
}

// leaves returns the paths of the fields below a type of the file that hold values. Policies are named as at every
// level.
func leaves(t reflect.Type, prefix string) (list []string) {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" || !f.IsExported() {
			continue
		}
		ft, at := f.Type, prefix+name
		if ft.Kind() == reflect.Pointer && ft.Elem().Kind() == reflect.Struct {
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Slice {
			ft, at = ft.Elem(), at+"[]"
		}
		switch {
		case f.Type == reflect.TypeFor[spec.Policy](): // defaults
			list = append(list, leaves(ft, "")...)
		case ft.Kind() == reflect.Struct && ft != reflect.TypeFor[spec.VLAN]():
			list = append(list, leaves(ft, at+".")...)
		default:
			list = append(list, prefix+name)
		}
	}
	return list
}

// TestEveryFieldOfTheFileIsExplained: policy fields by their path in a policy, all others by theirs in the file or the
// definition; and no field is explained that neither has.
func TestEveryFieldOfTheFileIsExplained(t *testing.T) {
	want := map[string]bool{}
	policy := leaves(reflect.TypeFor[spec.Policy](), "")
	paths := leaves(reflect.TypeFor[spec.Config](), "")
	for _, path := range leaves(reflect.TypeFor[spec.Definition](), "") {
		if !strings.HasPrefix(path, "switches[].") {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		i := slices.IndexFunc(policy, func(p string) bool {
			at := strings.TrimSuffix(path, p)
			return path == p || at == "ports[]." || at == "switches[].portGroups[]." ||
				(at == "switches[].uplinks[]." || at == "switches[].tunnel.") && strings.HasPrefix(p, "monitoring.")
		})
		if i >= 0 {
			path = policy[i]
		}
		want[path] = true
	}
	var got []string
	for _, x := range Topics() {
		if x.Kind == Field {
			got = append(got, x.Name)
		}
	}
	slices.Sort(got)
	if all := slices.Sorted(maps.Keys(want)); !slices.Equal(all, got) {
		for _, p := range all {
			if !slices.Contains(got, p) {
				t.Errorf("the file has %s, which is not explained", p)
			}
		}
		for _, p := range got {
			if !want[p] {
				t.Errorf("%s is explained, and the file does not have it", p)
			}
		}
	}
}

// TestExamplesAreReadAsTheFileIs: the example of each policy field is one that a port group may have.
func TestExamplesAreReadAsTheFileIs(t *testing.T) {
	for _, x := range policyTopics() {
		t.Run(x.Name, func(t *testing.T) {
			in := "  defaults: {" + x.Example + "}\n"
			if len(x.SetAt) == 1 { // at a port alone
				in = "ports:\n- {name: p, switch: lab, portGroup: web, " + x.Example + "}\n"
			}
			text := "switches:\n- name: lab\n  uplinks: [{name: uplink1}, {name: uplink2}]\n  portGroups: [{name: " +
				"web}]\n" +
				in
			if _, err := spec.Parse("x.yaml", []byte(text)); err != nil {
				t.Errorf("%s: %v", x.Example, err)
			}
		})
	}
}

func TestWordsLeadToTheirTopics(t *testing.T) {
	for word, want := range map[string][]string{
		"forged-transmit":            {"reason forged-transmit"},
		"security.forgedTransmits":   {"field security.forgedTransmits"},
		"forgedTransmits":            {"field security.forgedTransmits", "rule forged-transmits"},
		"--forged-transmits":         {"field security.forgedTransmits", "rule forged-transmits"},
		"Forged transmits":           {"field security.forgedTransmits", "rule forged-transmits"},
		"mac-limit":                  {"reason mac-limit", "field security.macLearning.limit", "rule mac-limit"},
		"macLearning.limit":          {"field security.macLearning.limit"},
		"uplinks.vlans":              {"field switches[].uplinks[].vlans"},
		"switches[].uplinks[].vlans": {"field switches[].uplinks[].vlans"},
		"Net.BlockGuestBPDU":         {"field switches[].checks.blockGuestBPDU"},
		"checks": {"field switches[].checks.reversePath", "field switches[].checks.reversePathPromiscuous",
			"field switches[].checks.blockGuestBPDU"},
		"addressGuard":          {"field security.addressGuard.enabled", "rule address-guard"}, // the flag's name
		"security.addressGuard": {"field security.addressGuard.enabled", "field security.addressGuard.addresses"},
		"security.macLearning": {"field security.macLearning.enabled", "field security.macLearning.limit",
			"field security.macLearning.limitPolicy", "field security.macLearning.ageing",
			"field security.macLearning.unicastFlooding"},
		"other-vlan": {"reason other-vlan"},
		"overlay":    {"field switches[].portGroups[].overlay.vni"},
		"vni":        {"field switches[].portGroups[].overlay.vni", "field switches[].tunnel.peers[].macs[].vni"},
		"hold":       {"field switches[].tunnel.neighbours.hold"},
		"tunnel.peers": {"field switches[].tunnel.peers[].address", "field switches[].tunnel.peers[].name",
			"field switches[].tunnel.peers[].subnet", "field switches[].tunnel.peers[].macs[].vni",
			"field switches[].tunnel.peers[].macs[].mac", "rule tunnel-peers"},
		"tunnel.neighbours": {"field switches[].tunnel.neighbours.answer", "field switches[].tunnel.neighbours.hold"},
		"half-open":         {"rule half-open"},
		"discovery":         {"field switches[].discovery.lldp"},
		"stormControl": {"field stormControl.broadcast", "field stormControl.multicast",
			"field stormControl.unknownUnicast", "field stormControl.burst",
			"field switches[].portGroups[].overrides.stormControl", "reason storm-control"},
		"forged": nil,
		"":       nil,
		"--":     nil,
	} {
		t.Run(word, func(t *testing.T) {
			var got []string
			for _, x := range Find(word, "") {
				got = append(got, string(x.Kind)+" "+x.Name)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	if got := Find("tunnel", Field); len(got) != 14 {
		t.Errorf("of a tunnel: %+v", got)
	}
	if got := Find("mac-limit", Rule); len(got) != 1 || got[0].Kind != Rule {
		t.Errorf("of the rules alone: %+v", got)
	}
}

func TestAWordThatMeansNothingIsAnsweredWithWhatIsNear(t *testing.T) {
	for _, x := range []struct {
		word string
		kind Kind
		want string
	}{
		{"forged-transmt", "", "there is no reason, field or rule forged-transmt; did you mean forged-transmit?"},
		{"forgedTransmts", "", "there is no reason, field or rule forgedTransmts; did you mean forged-transmits?"},
		{"failbak", "", "there is no reason, field or rule failbak; did you mean failback?"},
		{"half-opn", Reason, "there is no reason half-opn; all of them: heddle explain"},
		{"half-opn", Rule, "there is no rule half-opn; did you mean half-open?"},
	} {
		t.Run(x.word, func(t *testing.T) {
			if got := Missing(x.word, x.kind); got != x.want {
				t.Errorf("%s, want %s", got, x.want)
			}
		})
	}
}
