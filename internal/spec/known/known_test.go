package known

import (
	"fmt"
	"strings"
	"testing"
)

func TestMissingNamesSayWhatThereIs(t *testing.T) {
	many := make([]string, 52)
	for i := range many {
		many[i] = fmt.Sprintf("vm%02d", 51-i)
	}
	thirteen := "vm00, vm01, vm02, vm03, vm04, vm05, vm06, vm07, vm08, vm09, vm10, vm11, vm12"
	for _, c := range []struct {
		names Names
		name  string
		want  string
	}{
		{Names{What: "port group", Owner: "switch lab", All: []string{"web", "db", "nested"}}, "wbe",
			"switch lab has no port group wbe; did you mean web?"},
		{Names{What: "port group", Owner: "switch lab", All: []string{"web", "db", "nested"}}, "mail",
			"switch lab has no port group mail; it has db, nested, web"},
		{Names{What: "port group", Owner: "switch lab"}, "mail", "switch lab has no port group mail; it has none"},
		{Names{What: "port", All: []string{"a"}}, "mail", "there is no port mail; there is a"},
		{Names{What: "port", All: []string{"b", "a", "", "b"}}, "mail", "there is no port mail; there are a, b"},
		{Names{What: "port"}, "", "there is no port \"\"; there is none"},
		{Names{What: "port", All: many}, "mail", "there is no port mail; there are " +
			strings.TrimSuffix(thirteen, ", vm12") + " and 40 more"},
		{Names{What: "port", All: many[39:]}, "mail", "there is no port mail; there are " + thirteen},
		{Names{What: "uplink", All: []string{"eno2"}, Else: map[string]string{"eno1": "the device of uplink1"}}, "eno1",
			"there is no uplink eno1; eno1 is the device of uplink1"},
		{Names{What: "port", All: []string{"vm1/eth0", "vm10/eth0", "vm2/eth0"}}, "vm1",
			"there is no port vm1; did you mean vm1/eth0?"},
		{Names{What: "rule", All: []string{"forged-transmit", "security.forgedTransmits", "flood"}}, "forged",
			"there is no rule forged; did you mean forged-transmit or security.forgedTransmits?"},
		{Names{What: "port", All: []string{"vm10/eth0", "vm2/eth0"}}, "vm1",
			"there is no port vm1; there are vm10/eth0, vm2/eth0"},
		{Names{What: "port", All: many}, "vm", "there is no port vm; there are " +
			strings.TrimSuffix(thirteen, ", vm12") + " and 40 more"},
		{Names{What: "port", All: []string{"a"}}, "x\x1b[31m y", "there is no port \"x\\x1b[31m y\"; there is a"},
	} {
		if got := c.names.Missing(c.name); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestALongNameIsCut(t *testing.T) {
	if got := Shown(strings.Repeat("ü", 100)); got != strings.Repeat("ü", maxShown/2)+"…" {
		t.Errorf("got %s", got)
	}
}

func TestNearest(t *testing.T) {
	words := []string{"mtu", "name", "portGroups", "vlan", "access", "lab", "vm1"}
	for word, want := range map[string]string{
		"mut": "mtu", "nmae": "name", "portgroups": "portGroups", "PORTGROUP": "portGroups", "acess": "access",
		"vlna":   "vlan",
		"colour": "", "vm9": "", "": "", "xyz": "", strings.Repeat("a", 100): "",
	} {
		if got := Nearest(word, words); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "axc", 1},
		{"abc", "bcd", 2}, {"abc", "xyz", 3}} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("edits(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
