package kerneltest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/abi"
	"heddle/internal/observe"
)

// vds are the counters of a port under the names a VDS gives them, those that are zero left out.
func vds(c observe.Counters) map[string]uint64 {
	m := map[string]uint64{
		"packetsInDropped": c.PacketsInDropped(), "packetsOutDropped": c.PacketsOutDropped(),
		"packetsInException": c.PacketsInException(), "packetsOutException": c.PacketsOutException(),
		"bytesInFromPnic": c.BytesInFromPnic, "bytesOutToPnic": c.BytesOutToPnic,
	}
	for class, name := range map[int]string{abi.ClassUnicast: "Unicast", abi.ClassMulticast: "Multicast",
		abi.ClassBroadcast: "Broadcast"} {
		m["packetsIn"+name], m["bytesIn"+name] = c.PacketsIn[class], c.BytesIn[class]
		m["packetsOut"+name], m["bytesOut"+name] = c.PacketsOut[class], c.BytesOut[class]
	}
	for name, n := range m {
		if n == 0 {
			delete(m, name)
		}
	}
	return m
}

// A frame of 46 bytes of payload has 60, and 64 with a tag.
func TestS80_D7_D20_TheEighteenCountersMatchTheTraffic(t *testing.T) {
	r := newRig(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups: [{name: ten, vlan: {access: 10}}]
`, "vm1 ten", "vm2 ten", "vm3 ten, txUplink: true")
	r.send("vm1", "vm2 vm1 0800", to("vm2"))
	r.send("vm1", "vm2 vm1 0800 [1500]", to("vm2"))
	r.send("vm1", "ext1 vm1 0800", to("u1", "ext1 vm1 q10 0800"))
	r.send("vm1", "all vm1 0806", to("vm2 vm3"), to("u1", "all vm1 q10 0806"))
	r.send("vm1", "333300000001 vm1 86dd", to("vm2 vm3"), to("u1", "333300000001 vm1 q10 86dd"))
	r.send("vm1", "vm2 nest1 0800", dropped("forged-transmit"))
	r.send("vm1", "vm2 vm1 q0 0800 [2]", to("vm2", "vm2 vm1 0800 [2]"))
	r.send("vm1", "vm2 vm1 q0 [0]", dropped("malformed"))
	r.send("u1", "vm2 ext1 q10 0800", to("vm2", "vm2 ext1 0800"))
	r.send("u1", "all ext1 q10 0806", to("vm1 vm2 vm3", "all ext1 0806"), to("host"))
	r.send("u1", "dev1 ext1 0800", to("host"))
	r.send("vm3", "vm2 vm3 0800", to("vm2"), to("u1", "vm2 vm3 q10 0800"))
	r.fact("vm2", down)
	r.send("vm1", "vm2 vm1 0800", refused("vm2", "receiver-down"), dropped("receiver-down"))

	want := map[string]map[string]uint64{
		"vm1": {
			"packetsInUnicast": 7, "bytesInUnicast": 60 + 1514 + 60 + 60 + 20 + 16 + 60, "packetsInBroadcast": 1,
			"bytesInBroadcast":   60,
			"packetsInMulticast": 1, "bytesInMulticast": 60, "packetsInDropped": 2, "packetsInException": 1,
			"packetsOutBroadcast": 1, "bytesOutBroadcast": 60, "bytesInFromPnic": 60, "bytesOutToPnic": 3 * 64,
		},
		"vm2": {
			"packetsOutUnicast": 5, "bytesOutUnicast": 60 + 1514 + 16 + 60 + 60, "packetsOutBroadcast": 2,
			"bytesOutBroadcast":   120,
			"packetsOutMulticast": 1, "bytesOutMulticast": 60, "bytesInFromPnic": 120, "packetsOutDropped": 1,
		},
		"vm3": {
			"packetsInUnicast": 1, "bytesInUnicast": 60, "packetsOutBroadcast": 2, "bytesOutBroadcast": 120,
			"packetsOutMulticast": 1, "bytesOutMulticast": 60, "bytesInFromPnic": 60, "bytesOutToPnic": 64,
		},
		"u1": {
			"packetsInUnicast": 2, "bytesInUnicast": 64 + 60, "packetsInBroadcast": 1, "bytesInBroadcast": 64,
			"packetsOutUnicast": 2, "bytesOutUnicast": 128, "packetsOutBroadcast": 1, "bytesOutBroadcast": 64,
			"packetsOutMulticast": 1, "bytesOutMulticast": 64,
		},
	}
	counters, err := r.rec.Counters()
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range want {
		if d := cmp.Diff(w, vds(counters[r.id(name)])); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
