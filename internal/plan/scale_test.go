package plan

import (
	"fmt"
	"strings"
	"testing"

	"heddle/internal/spec"
)

// manyPorts returns a file of n ports in ten port groups.
func manyPorts(n int) []byte {
	var b strings.Builder
	b.WriteString("switches:\n  - name: lab\n    uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: " +
		"eno2}]\n    portGroups:\n")
	for g := range 10 {
		fmt.Fprintf(&b, "      - {name: g%d, vlan: {access: %d}, security: {forgedTransmits: accept}}\n", g, g+100)
	}
	b.WriteString("ports:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: vm%d/eth0, switch: lab, portGroup: g%d, device: tap%d, mac: "+
			"\"02:00:00:00:%02x:%02x\"}\n", i, i%10, i, i>>8, i&255)
	}
	return []byte(b.String())
}

// BenchmarkParse1000 measures what `heddle check` costs on a full host.
func BenchmarkParse1000(b *testing.B) {
	data := manyPorts(1000)
	for b.Loop() {
		if _, err := spec.Parse("bench.yaml", data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkResolve1000 measures the share of resolving in a change on a full host; the whole change has 10 ms.
func BenchmarkResolve1000(b *testing.B) {
	cfg, err := spec.Parse("bench.yaml", manyPorts(1000))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Resolve(cfg, nil); err != nil {
			b.Fatal(err)
		}
	}
}
