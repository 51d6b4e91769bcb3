package spec

import (
	"fmt"
	"strings"
	"testing"
)

// crowd is a file of n switches with a port group each, and m ports on the first.
func crowd(n, m int) []byte {
	var b strings.Builder
	b.WriteString("switches:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: s%d, uplinks: [{name: u}], portGroups: [{name: g}]}\n", i)
	}
	b.WriteString("ports:\n")
	for i := range m {
		fmt.Fprintf(&b, "  - {name: p%d, switch: s0, portGroup: g}\n", i)
	}
	return []byte(b.String())
}

func TestParse_MoreThanAHostHasRoomForIsOneFault(t *testing.T) {
	for _, c := range []struct {
		switches, ports int
		want            string
	}{
		{MaxSwitches, MaxMembers - MaxSwitches, ""},
		{MaxSwitches + 2, 1, "f.yaml:34:5: switches[32]: a host can have at most 32 switches, and here are 34"},
		{2, MaxMembers,
			"f.yaml:2050:5: ports[2045]: a host can have at most 2047 ports and uplinks, and here are 2049"},
	} {
		_, err := Parse("f.yaml", crowd(c.switches, c.ports))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%d switches, %d ports: got %q, want %q", c.switches, c.ports, got, c.want)
		}
	}
}

func TestWithPorts_TheLastPlaceOfAHostIsTaken(t *testing.T) {
	cfg, err := Parse("f.yaml", crowd(1, MaxMembers-2))
	if err != nil {
		t.Fatal(err)
	}
	more := []Port{{Name: "a", Switch: "s0", PortGroup: "g"}, {Name: "b", Switch: "s0", PortGroup: "g"}}
	merged, faults := WithPorts(cfg, more)
	if len(merged.Ports) != MaxMembers-1 || len(faults) != 1 || !strings.Contains(faults.Error(), "at most 2047") {
		t.Errorf("%d ports, faults: %v", len(merged.Ports), faults)
	}
}

func TestAFileWithoutAnEndIsTooLarge(t *testing.T) {
	if _, err := Load("/dev/zero"); err == nil || !strings.Contains(err.Error(), "16 MiB") {
		t.Errorf("%v", err)
	}
}
