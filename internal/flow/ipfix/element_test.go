package ipfix

import (
	"strings"
	"testing"
)

func TestEveryElementIsFoundByNumberAndName(t *testing.T) {
	if len(table) < 480 || len(table) != len(byName) {
		t.Fatalf("%d elements, %d names", len(table), len(byName))
	}
	for _, e := range table {
		if got, ok := Lookup(e.PEN, e.ID); !ok || got != e {
			t.Errorf("Lookup(%d, %d) = %v, %v", e.PEN, e.ID, got, ok)
		}
		if got, ok := Named(e.Name); !ok || got != e {
			t.Errorf("Named(%s) = %v, %v", e.Name, got, ok)
		}
		if strings.TrimSpace(e.Name) != e.Name || strings.Contains(e.Name, "/") {
			t.Errorf("a strange name: %q", e.Name)
		}
	}
}

func TestElements(t *testing.T) {
	for name, want := range map[string]Element{
		"octetDeltaCount":        {ID: 1, Type: Unsigned64, Semantics: DeltaCounter, Units: "octets"},
		"sourceMacAddress":       {ID: 56, Type: MACAddress},
		"flowStartMilliseconds":  {ID: 152, Type: DateTimeMilliseconds, Units: "milliseconds"},
		"interfaceName":          {ID: 82, Type: String},
		"ingressInterfaceAttr":   {PEN: VMware, ID: 890, Type: Unsigned16, Semantics: Identifier},
		"vxlanExportRole":        {PEN: VMware, ID: 889, Type: Unsigned8, Semantics: Identifier},
		"tenantSourceIPv6":       {PEN: VMware, ID: 883, Type: IPv6Address},
		"reverseOctetTotalCount": {PEN: Reverse, ID: 85, Type: Unsigned64, Semantics: TotalCounter, Units: "octets"},
	} {
		t.Run(name, func(t *testing.T) {
			want.Name = name
			if got, ok := Named(name); !ok || got != want {
				t.Errorf("Named(%s) = %+v, %v, want %+v", name, got, ok, want)
			}
			if got, ok := Lookup(want.PEN, want.ID); !ok || got != want {
				t.Errorf("Lookup(%d, %d) = %+v, %v, want %+v", want.PEN, want.ID, got, ok, want)
			}
		})
	}
}

func TestElementsThatAreNot(t *testing.T) {
	for _, name := range []string{"", "nonsense", "reverse", "reverseNonsense", "reverseIngressInterface",
		"reverseoctetTotalCount", "reverseTenantProtocol", "reverseReverseOctetDeltaCount"} {
		if e, ok := Named(name); ok {
			t.Errorf("Named(%s) = %v", name, e)
		}
	}
	for _, c := range [][2]int{{0, 0}, {0, 97}, {0, 32767}, {VMware, 1}, {Reverse, 210}, {Reverse, 10}, {Reverse, 97},
		{99999, 1}} {
		e, ok := Lookup(uint32(c[0]), uint16(c[1]))
		if ok || e.PEN != uint32(c[0]) || e.ID != uint16(c[1]) || e.Type != OctetArray || e.Name != "" {
			t.Errorf("Lookup(%d, %d) = %+v, %v", c[0], c[1], e, ok)
		}
	}
	if got := (Element{PEN: 6871, ID: 14}).String(); got != "6871/14" {
		t.Errorf("an element without name is %q", got)
	}
}
