package advise

import (
	"fmt"
	"testing"
)

// BenchmarkExamine_AThousandPorts measures an examination on a full host.
func BenchmarkExamine_AThousandPorts(b *testing.B) {
	text := sound
	for i := range 1000 {
		text += fmt.Sprintf("- {name: x%d, switch: lab, portGroup: sensor, device: px%d, mac: "+
			"\"02:00:00:00:%02x:%02x\"}\n", i, i, 16+i>>8, i&255)
	}
	r := newRig(b, text)
	b.ResetTimer()
	for range b.N {
		Examine(r.Snapshot)
	}
}
