package adoption

import (
	"net/netip"
	"strings"
	"testing"

	"heddle/internal/spec"
)

// What is to be added to the file after an adoption has the gateway, where the file can have it, and is valid.
func TestS81_ADeclarationHasTheGateway(t *testing.T) {
	port := spec.Port{Name: "vmk0", Switch: "lab", PortGroup: "web", Role: spec.Host,
		Addresses: []string{"192.0.2.10/24", "2001:db8::10/64"}}
	for gateways, want := range map[string]string{"": "", "192.0.2.1": "192.0.2.1", "198.51.100.1": "",
		"198.51.100.1 2001:db8::1": "2001:db8::1", "fe80::1 192.0.2.1": "192.0.2.1"} {
		var list []netip.Addr
		for text := range strings.FieldsSeq(gateways) {
			list = append(list, netip.MustParseAddr(text))
		}
		text := "switches: [{name: lab, portGroups: [{name: web}]}]\n" + declaration(port, list)
		cfg, err := spec.Parse("f.yaml", []byte(text))
		if err != nil || cfg.Ports[0].Gateway != want {
			t.Errorf("%q: %v\n%s", gateways, err, text)
		}
	}
}
