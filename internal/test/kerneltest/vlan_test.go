package kerneltest

import "testing"

const vlans = `
  uplinks: [{name: u1, device: dev1}]
  portGroups:
  - {name: none}
  - {name: ten, vlan: {access: 10}}
  - {name: ten-too, vlan: {access: 10}}
  - {name: eleven, vlan: {access: 11}}
  - {name: trunk, vlan: {trunk: ["10-20"]}}
  - {name: trunk0, vlan: {trunk: ["0", "10-20"]}}
  - {name: provider, vlan: {trunk: ["10-20"], outer: 802.1ad}}
`

func TestS21_AnAccessFrameLeavesAnUplinkWithExactlyOneTag(t *testing.T) {
	r := newRig(t, vlans, "vm1 ten", "vm2 ten", "vm3 trunk", "vm4 eleven")
	r.send("vm1", "ext1 vm1 0800", to("u1", "ext1 vm1 8100 000a 0800"))
	r.send("vm1", "all vm1 0806", to("vm2"), to("vm3 u1", "all vm1 8100 000a 0806"))
	r.send("vm4", "ext1 vm4 0800", to("u1", "ext1 vm4 8100 000b 0800"))
}

func TestS22_ATaggedFrameFromAnUplinkIsDeliveredUntagged(t *testing.T) {
	r := newRig(t, vlans, "vm1 ten", "vm2 eleven")
	r.send("u1", "vm1 ext1 8100 000a 0800", to("vm1", "vm1 ext1 0800"))
	r.send("u1", "vm1 ext1 8100 e00a 0800", to("vm1", "vm1 ext1 0800"))             // with a priority
	r.send("u1", "vm1 ext1 8100 000a 8100 0063", to("vm1", "vm1 ext1 8100 0063"))   // a tag below is payload
	r.send("u1", "all ext1 8100 000b 0806", to("vm2", "all ext1 0806"), to("host")) // the host: as it came
	r.send("u1", "vm1 ext1 8100 000b 0800", dropped("unknown-unicast"))
	r.send("u1", "vm1 ext1 88a8 000a 0800", dropped("unknown-unicast"))
	r.send("u1", "vm1 ext1 0800", dropped("unknown-unicast"))
}

func TestS23_APortInNoVLANGetsNoTaggedFrame(t *testing.T) {
	r := newRig(t, vlans, "vm1 none", "vm2 none")
	r.send("u1", "vm1 ext1 q10 0800", dropped("unknown-unicast"))
	r.send("u1", "all ext1 q10 0806", to("host"))
	r.send("u1", "vm1 ext1 0800", to("vm1"))
	r.send("u1", "vm1 ext1 8100 6000 0800", to("vm1")) // VID 0 is no VLAN: as it came
	r.send("vm1", "vm2 vm1 q10 0800", dropped("guest-tagged"))
	r.send("vm1", "all vm1 ad10 0806", dropped("guest-tagged"))
	r.send("vm1", "all vm1 0806", to("vm2 u1"))
}

func TestS24_ATrunkKeepsItsTagsAndDropsOthers(t *testing.T) {
	r := newRig(t, vlans, "vm1 trunk", "vm2 trunk0", "vm3 ten", "vm4 none")
	r.send("vm1", "all vm1 8100 000f 0806", to("vm2 u1"))
	r.send("vm1", "all vm1 8100 b00f 0806", to("vm2 u1")) // with its priority and drop eligibility
	r.send("vm1", "all vm1 8100 b00a 0806", to("vm2 u1"), to("vm3", "all vm1 0806"))
	r.send("vm1", "vm2 vm1 8100 000a 8100 00c8", to("vm2"))
	r.send("u1", "vm1 ext1 8100 200f 0800", to("vm1"))
	for _, tag := range []string{"q9", "q25", "q4095", "ad15"} {
		r.send("vm1", "vm2 vm1 "+tag+" 0800", dropped("vlan-not-allowed"))
		r.send("u1", "vm1 ext1 q25 0800", dropped("unknown-unicast"))
	}
}

func TestS24_D11_AProviderTrunkIsASegmentOfItsOwn(t *testing.T) {
	r := newRig(t, vlans, "vm1 provider", "vm2 provider", "vm3 trunk", "vm4 ten")
	r.send("vm1", "all vm1 88a8 000a 8100 0007 0806", to("vm2 u1"))
	r.send("u1", "all ext1 88a8 000a 8100 0007 0806", to("vm1 vm2 host"))
	r.send("u1", "all ext1 8100 000a 0806", to("vm3 host"), to("vm4", "all ext1 0806"))
	r.send("vm1", "all vm1 8100 000a 0806", dropped("vlan-not-allowed"))
	r.send("vm3", "all vm3 88a8 000a 0806", dropped("vlan-not-allowed"))
}

func TestS25_ATrunkWithoutZeroDropsUntagged(t *testing.T) {
	r := newRig(t, vlans, "vm1 trunk", "vm2 trunk0", "vm3 none")
	r.send("vm1", "all vm1 0806", dropped("vlan-not-allowed"))
	r.send("vm1", "all vm1 8100 0000 0806", dropped("vlan-not-allowed"))
	r.send("vm2", "all vm2 0806", to("vm3 u1"))
	r.send("vm2", "all vm2 8100 e000 0806", to("vm3 u1"))
	r.send("u1", "all ext1 0806", to("vm2 vm3 host"))
}

func TestS26_PortGroupsOfOneVLANAreOneBroadcastDomain(t *testing.T) {
	r := newRig(t, vlans, "vm1 ten", "vm2 ten-too", "vm3 eleven")
	r.send("vm1", "all vm1 0806", to("vm2"), to("u1", "all vm1 q10 0806"))
	r.send("vm1", "vm2 vm1 0800", to("vm2"))
	r.send("vm1", "vm3 vm1 0800", to("u1", "vm3 vm1 q10 0800")) // another VLAN: out, to whoever routes
}

func TestS26_TwoSwitchesAreApartEvenInOneVLAN(t *testing.T) {
	r := newRig(t, vlans+"- {name: r, portGroups: [{name: ten, vlan: {access: 10}}]}\n", "vm1 ten", "r/vm2 ten",
		"r/vm3 ten")
	r.send("vm1", "all vm1 0806", to("u1", "all vm1 q10 0806"))
	r.send("vm1", "vm2 vm1 0800", to("u1", "vm2 vm1 q10 0800"))
	r.send("vm2", "all vm2 0806", to("vm3"))
}

func TestS27_AnUplinksRangeFiltersBothWays(t *testing.T) {
	r := newRig(t, vlans, "vm1 ten", "vm2 none")
	r.change("device: dev1", `device: dev1, vlans: ["20-30"]`)
	r.send("vm1", "ext1 vm1 0800", refused("u1", "uplink-vlan"), dropped("uplink-vlan"))
	r.send("vm2", "all vm2 0806", refused("u1", "uplink-vlan"), dropped("uplink-vlan"))
	r.send("u1", "vm1 ext1 q10 0800", dropped("uplink-vlan"))
	r.send("u1", "vm2 ext1 0800", dropped("uplink-vlan"))
	r.change(`vlans: ["20-30"]`, `vlans: ["10-30"]`)
	r.send("vm1", "ext1 vm1 0800", to("u1", "ext1 vm1 q10 0800"))
	r.send("u1", "vm1 ext1 q10 0800", to("vm1", "vm1 ext1 0800"))
}

func TestD9_D12_GuestsOfAccessPortsMayTagPriorityOnly(t *testing.T) {
	r := newRig(t, vlans, "vm1 ten", "vm2 ten", "vm3 trunk", "vm4 none", "vm5 none")
	r.send("vm1", "all vm1 8100 e000 0806", to("vm2", "all vm1 0806"), to("vm3 u1", "all vm1 8100 e00a 0806"))
	r.send("vm1", "all vm1 88a8 e000 0806", to("vm2", "all vm1 0806"), to("vm3 u1", "all vm1 8100 e00a 0806"))
	r.send("vm4", "all vm4 8100 2000 0806", to("vm5 u1"))
	r.send("vm1", "all vm1 q10 0806", dropped("guest-tagged"))
	r.send("vm1", "all vm1 q11 0806", dropped("guest-tagged"))
	r.send("vm1", "all vm1 q0 q11 0806", dropped("guest-tagged")) // no hopping by a tag below
	r.send("vm4", "all vm4 q0 q11 0806", dropped("guest-tagged"))
}
