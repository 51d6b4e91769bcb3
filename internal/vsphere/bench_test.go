package vsphere

import (
	"bytes"
	"fmt"
	"testing"

	"heddle/internal/spec"
)

// large is a dump of so many switches with so many port groups each, and 16 hosts that all have them.
func large(switches, groups int) []byte {
	var b bytes.Buffer
	for s := range switches {
		fmt.Fprintf(&b, `{"self":{"type":"VmwareDistributedVirtualSwitch","value":"dvs-%d"},"name":"dvs%03d",`+
			`"config":{"uuid":"dvs-%[1]d","maxMtu":9000,"uplinkPortPolicy":{"uplinkPortName":["u1","u2"]},`+
			`"host":[`, s, s)
		for h := range 16 {
			fmt.Fprintf(&b, `%s{"config":{"host":{"value":"host-%d"},"backing":{"pnicSpec":[{"pnicDevice":"vmnic%d",`+
				`"uplinkPortKey":"%[2]d"}]}}}`, []string{",", ""}[b2i(h == 0)], h, s)
		}
		b.WriteString("]}}\n")
		for g := range groups {
			fmt.Fprintf(&b, `{"self":{"type":"DistributedVirtualPortgroup","value":"dvportgroup-%d"},"name":"pg%d",`+
				`"config":{"_typeName":"DVPortgroupConfigInfo","key":"dvportgroup-%[1]d","type":"earlyBinding",`+
				`"numPorts":8,"autoExpand":true,"distributedVirtualSwitch":{"value":"dvs-%[3]d"},"policy":{`+
				`"blockOverrideAllowed":true,"portConfigResetAtDisconnect":true},"defaultPortConfig":{"vlan":{`+
				`"inherited":false,"vlanId":%[4]d},"securityPolicy":{"inherited":false,"allowPromiscuous":{`+
				`"inherited":true,"value":false},"macChanges":{"inherited":true,"value":false},`+
				`"forgedTransmits":{"inherited":false,`+
				`"value":true}},"uplinkTeamingPolicy":{"inherited":false,"policy":{"inherited":false,"value":`+
				`"failover_explicit"},"uplinkPortOrder":{"inherited":false,"activeUplinkPort":["u1"],`+
				`"standbyUplinkPort":["u2"]}}}}}`+"\n", s*groups+g, g, s, 1+g%4094)
		}
	}
	return b.Bytes()
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// One operation is the import of 100 switches with 1,000 port groups each, from the text of the dump to the text of the
// definition.
func BenchmarkImportOf100SwitchesWith1000PortGroups(b *testing.B) {
	dump := large(100, 1000)
	b.SetBytes(int64(len(dump)))
	b.ReportAllocs()
	for b.Loop() {
		inv := &Inventory{}
		if err := inv.Read("dump", bytes.NewReader(dump)); err != nil {
			b.Fatal(err)
		}
		r, err := inv.Translate(Options{})
		if err != nil {
			b.Fatal(err)
		}
		text, err := spec.FormatDefinition(r.Definition)
		if err != nil || r.PortGroups != 100_000 {
			b.Fatal(len(text), err)
		}
	}
}
