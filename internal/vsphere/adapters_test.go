package vsphere

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/spec"
)

// adaptersOf is a dump of a host with VMkernel adapters, and with gateways of its stacks.
func adaptersOf(t *testing.T, stacks string, specs ...string) *Result {
	t.Helper()
	var vnics []string
	for i, s := range specs {
		vnics = append(vnics, fmt.Sprintf(`{"device":"vmk%d","spec":{"distributedVirtualPort":{"switchUuid":"50 13",`+
			`"portgroupKey":"dvportgroup-1"}%s}}`, i, s))
	}
	dump := `{"self":{"type":"VmwareDistributedVirtualSwitch","value":"dvs-1"},"name":"dvs","config":{"uuid":"50 13",
		"uplinkPortPolicy":{"uplinkPortName":["u1"]},"host":[{"config":{"host":{"type":"HostSystem","value":"host-1"}}}]}}
		{"self":{"type":"DistributedVirtualPortgroup","value":"dvportgroup-1"},"name":"pg","config":{
		"key":"dvportgroup-1","distributedVirtualSwitch":{"value":"dvs-1"}}}
		{"self":{"type":"HostSystem","value":"host-1"},"name":"esx1","config":{"network":{` + stacks + `"vnic":[` +
		strings.Join(vnics, ",") + `]}}}`
	inv := &Inventory{}
	if err := inv.Read("dump", strings.NewReader(dump)); err != nil {
		t.Fatal(err)
	}
	r, err := inv.Translate(Options{HostPorts: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Adapters keep their addresses of both families and a gateway; what a host port can't have is noted.
func TestImport_AdaptersKeepWhatHostPortsHave(t *testing.T) {
	const v4 = `"dhcp":false,"ipAddress":"192.0.2.11","subnetMask":"255.255.255.0"`
	const v6 = `"ipV6Config":{"ipV6Address":[{"ipAddress":"fe80::1","prefixLength":64},
		{"ipAddress":"2001:db8::11","prefixLength":64,"origin":"manual"},
		{"ipAddress":"2001:db8::99","prefixLength":64,"origin":"linklayer"}]}`
	const gateways = `{"ipRouteConfig":{"defaultGateway":"192.0.2.1","ipV6DefaultGateway":"2001:db8::1"}}`
	both := []string{"192.0.2.11/24", "2001:db8::11/64"}
	for _, c := range []struct {
		what, stacks string
		specs        []string
		want         []spec.HostPort
		notes        []string
	}{
		{"both families, the stack's gateway", `"ipRouteConfig":{"defaultGateway":"192.0.2.1"},`,
			[]string{`,"ip":{` + v4 + `,` + v6 + `}`},
			[]spec.HostPort{{Name: "vmk0", Addresses: both, Gateway: "192.0.2.1"}},
			nil},
		{"the gateway is another adapter's", `"ipRouteConfig":{"defaultGateway":"198.51.100.1"},`,
			[]string{`,"ip":{` + v4 + `}`, `,"ip":{"ipAddress":"198.51.100.9","subnetMask":"255.255.255.0"}`},
			[]spec.HostPort{{Name: "vmk0", Addresses: []string{"192.0.2.11/24"}},
				{Name: "vmk1", Addresses: []string{"198.51.100.9/24"}, Gateway: "198.51.100.1"}}, nil},
		{"gateways of its own in a stack of its own", "",
			[]string{`,"mac":"00:50:56:00:00:01","netStackInstanceKey":"vmotion","ip":{` + v4 + `},"ipRouteSpec":` + gateways},
			[]spec.HostPort{{Name: "vmk0", Addresses: []string{"192.0.2.11/24"}}},
			[]string{"TCP/IP stack vmotion", "gateway 192.0.2.1", "gateway 2001:db8::1",
				"MAC address 00:50:56:00:00:01"}},
		{"a port has one gateway", "", []string{`,"ip":{` + v4 + `,` + v6 + `},"ipRouteSpec":` + gateways},
			[]spec.HostPort{{Name: "vmk0", Addresses: both, Gateway: "192.0.2.1"}},
			[]string{"gateway 2001:db8::1"}},
		{"automatic addresses", "", []string{`,"pinnedPnic":"vmnic1","ip":{"dhcp":true,"ipAddress":"192.0.2.11",
			"subnetMask":"255.255.255.0","ipV6Config":{"autoConfigurationEnabled":true,"dhcpV6Enabled":true}}`},
			[]spec.HostPort{{Name: "vmk0"}},
			[]string{"DHCP true", "IPv6 autoconfiguration true", "DHCPv6 true", "pinned network card vmnic1"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := adaptersOf(t, c.stacks, c.specs...)
			got := r.Definition.Hosts[0].HostPorts
			for i := range got {
				got[i].Switch, got[i].PortGroup = "", ""
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			var notes []string
			for _, n := range r.Notes {
				if strings.Contains(n.Object, "VMkernel adapter") {
					notes = append(notes, n.Setting+" "+n.Value)
				}
			}
			if diff := cmp.Diff(c.notes, notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}
