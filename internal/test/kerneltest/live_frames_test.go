package kerneltest

import (
	"fmt"
	"testing"
)

const liveVLANs = `
  uplinks: [{name: u1, device: dev1}]
  defaults: {security: {forgedTransmits: accept}}
  portGroups:
  - {name: none}
  - {name: ten, vlan: {access: 10}}
  - {name: trunk, vlan: {trunk: ["10-20"]}}
  - {name: provider, vlan: {trunk: ["10-20"], outer: 802.1ad}}
`

func TestS21_S22_S24_TagsBesideTheFrameOnRealDevices(t *testing.T) {
	h := newHost(t, liveVLANs, "vm1 ten", "tap2 ten", "vm3 trunk", "tap4 trunk", "vm5 none", "vm6 provider",
		"tap7 provider")
	h.emit("vm1", "ext1 vm1 0800", to("u1", "ext1 vm1 8100 000a 0800"))
	for _, at := range []string{"vm1", "tap2"} {
		other := map[string]string{"vm1": "tap2", "tap2": "vm1"}[at]
		h.emit(at, "all "+at+" 0806", to(other), to("vm3 tap4 u1", "all "+at+" 8100 000a 0806"))
		h.emit(at, "all "+at+" 8100 e000 0806", to(other, "all "+at+" 0806"),
			to("vm3 tap4 u1", "all "+at+" 8100 e00a 0806"))
		h.emit(at, other+" "+at+" 0800 [1500]", to(other))
		h.emit(at, "all "+at+" 8100 000a 0806", dropped("guest-tagged"))
		h.emit(at, "all "+at+" 8100 0000 8100 000a 0806", dropped("guest-tagged"))
	}
	for _, at := range []string{"vm3", "tap4"} {
		other := map[string]string{"vm3": "tap4", "tap4": "vm3"}[at]
		h.emit(at, "all "+at+" 8100 b00a 0806", to("vm1 tap2", "all "+at+" 0806"), to("u1"), to(other))
		h.emit(at, other+" "+at+" 8100 b00f 8100 00c8 0800", to(other)) // two tags
		h.emit(at, "vm1 "+at+" 8100 000a 8100 00c8 0800", to("vm1", "vm1 "+at+" 8100 00c8 0800"))
		h.emit(at, "all "+at+" 8100 0019 0806", dropped("vlan-not-allowed"))
		h.emit(at, "all "+at+" 88a8 000a 0806", dropped("vlan-not-allowed"))
		h.emit(at, "all "+at+" 0806", dropped("vlan-not-allowed"))
	}
	for _, at := range []string{"vm6", "tap7"} {
		other := map[string]string{"vm6": "tap7", "tap7": "vm6"}[at]
		h.emit(at, "all "+at+" 88a8 000a 8100 0007 0806", to("u1"), to(other))
		h.emit(at, other+" "+at+" 88a8 600a 8100 0007 0800", to(other))
		h.emit(at, "all "+at+" 8100 000a 0806", dropped("vlan-not-allowed"))
	}
}

func TestS22_S23_S27_FramesFromAnUplinkOnRealDevices(t *testing.T) {
	h := newHost(t, liveVLANs, "vm1 ten", "tap2 ten", "tap4 trunk", "vm5 none", "tap7 provider")
	h.emit("u1", "vm1 ext1 8100 000a 0800", to("vm1", "vm1 ext1 0800"))
	h.emit("u1", "tap2 ext1 8100 e00a 0800 [1500]", to("tap2", "tap2 ext1 0800 [1500]"))
	h.emit("u1", "tap4 ext1 8100 e00a 0800", to("tap4"))
	h.emit("u1", "tap2 ext1 8100 000a 8100 0063 0800", to("tap2", "tap2 ext1 8100 0063 0800"))
	h.emit("u1", "tap7 ext1 88a8 000a 8100 0063 0800", to("tap7"))
	h.emit("u1", "all ext1 8100 000a 0806", to("vm1 tap2", "all ext1 0806"), to("tap4 host"))
	h.emit("u1", "all ext1 8100 6000 0806", to("vm5 host"))
	h.emit("u1", "vm5 ext1 8100 0014 0800", dropped("unknown-unicast"))
	h.emit("u1", "vm1 ext1 0800", dropped("unknown-unicast"))
	h.edit("device: dev1", `device: dev1, vlans: ["20-30"]`)
	h.emit("u1", "vm1 ext1 8100 000a 0800", dropped("uplink-vlan"))
	h.emit("vm1", "ext1 vm1 0800", refused("u1", "uplink-vlan"), dropped("uplink-vlan"))
}

func TestS12_S14_S33_S34_KnownFloodedAndBroadcastOnRealDevices(t *testing.T) {
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}, {name: u2, device: dev2}]
  defaults: {security: {forgedTransmits: accept}}
  portGroups:
  - {name: web}
  - {name: sniff, security: {promiscuous: accept}}
  - {name: learn, security: {macLearning: {enabled: true}}}
`, "vm1 web", "tap2 web", "vm3 learn", "tap4 learn", "vm5 sniff", "tap6 sniff") // 1, 3 and 5 leave by u2
	h.emit("vm1", "tap2 vm1 0800", to("tap2 vm5 tap6"))
	h.emit("tap2", "vm1 tap2 0800", to("vm1 vm5 tap6"))
	h.emit("vm1", "ext1 vm1 0800", to("vm3 tap4 vm5 tap6 u2"))
	h.emit("tap2", "ext1 tap2 0800", to("vm3 tap4 vm5 tap6 u1"))
	h.emit("vm3", "all nest3 0806", to("vm1 tap2 tap4 vm5 tap6 u2"))
	h.emit("tap4", "01005e000001 nest4 0800", to("vm1 tap2 vm3 vm5 tap6 u1"))
	h.emit("vm1", "nest3 vm1 0800", to("vm3 vm5 tap6"))
	h.emit("vm3", "nest4 vm3 0800", to("tap4 vm5 tap6"))
	h.emit("u2", "vm1 ext1 0800", to("vm1 vm5"), refused("tap6", "reverse-path"))
	h.emit("u1", "nest3 ext1 0800", to("vm3 tap6"), refused("vm5", "reverse-path"))
}

func TestS94_RuntsAndMalformedFramesOnRealDevices(t *testing.T) {
	h := newHost(t, `
  portGroups: [{name: trunk, vlan: {trunk: ["0-4094"]}}]
`, "vm1 trunk", "tap2 trunk", "vm3 trunk")
	h.emit("vm1", "all vm1 0806 [0]", to("tap2 vm3"))
	h.emit("tap2", "all tap2 0806 [0]", to("vm1 vm3"))
	h.emit("tap2", "all tap2 8100 000a 0806 [2]", to("vm1 vm3"))
	for _, at := range []string{"vm1", "tap2"} { // with one tag the kernel discards them before the program
		h.emit(at, "all "+at+" 8100 000a 8100 0007 0800 [1]", dropped("malformed"))
	}
	h.emit("tap2", "all tap2 0806 [1501]", dropped("mtu-exceeded"))
}

// The uplink of a port channel's ports is that of the two addresses' last octets, tagged or not, from veth and tap.
// When one fails, what had chosen it chooses again among the uplinks that are left, and nothing else moves.
func TestS46_D18_IPHashOnRealDevices(t *testing.T) {
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}, {name: u2, device: dev2}, {name: u3, device: dev3}]
  portGroups:
  - {name: hash, teaming: {policy: ip-hash}, vlan: {trunk: ["0", "5"]}}
`, "vm1 hash", "tap2 hash")
	forms := []string{"0800 4500001400000000400000000a0000%02x0a0000%02x [26]",
		"86dd 6000000000003b40 fd%030x fd%030x [6]"}
	leave := func(choice map[[2]int]string) {
		t.Helper()
		for octets, u := range choice {
			for _, form := range forms {
				f := fmt.Sprintf(form, octets[0], octets[1])
				for _, at := range []string{"vm1", "tap2"} {
					h.emit(at, "ext1 "+at+" "+f, to(u))
					h.emit(at, "ext1 "+at+" 8100 0005 "+f, to(u))
				}
			}
		}
	}
	// 15, 13, 4 and 206 mod 3
	leave(map[[2]int]string{{10, 5}: "u1", {10, 7}: "u2", {6, 2}: "u2", {200, 6}: "u3", {6, 200}: "u3"})
	f := h.d.Facts[port("u2")]
	f.Up = false
	h.d.Facts[port("u2")] = f
	h.reapply()
	// 13 and 4 mod 2, of u1 and u3; the others stay
	leave(map[[2]int]string{{10, 5}: "u1", {10, 7}: "u3", {6, 2}: "u1", {200, 6}: "u3"})
}
