package kerneltest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"heddle/internal/plan"
)

const twoUplinks = `
  uplinks: [{name: u1, device: dev1}, {name: u2, device: dev2}]
  portGroups:
  - {name: web}
  - {name: sniff, security: {promiscuous: accept, forgedTransmits: accept}}
  - {name: learn, security: {macLearning: {enabled: true}, forgedTransmits: accept}}
  - {name: both, teaming: {policy: ip-hash}}
`

func TestS31_NothingGoesFromUplinkToUplink(t *testing.T) {
	r := newRig(t, twoUplinks, "vm1 learn, txUplink: true", "vm2 sniff")
	r.send("u2", "all ext1 0806", to("vm1 host"), refused("vm2", "reverse-path"))
	r.send("u1", "ext2 ext1 0800", flooded, to("vm2"), refused("vm1", "reverse-path"))
	r.send("u2", "vm1 ext1 0800", to("vm1"), refused("vm2", "reverse-path"))
	r.send("u1", "dev2 ext1 0800", flooded, to("vm2"), refused("vm1", "reverse-path")) // the other uplink's own MAC
	r.learned()
}

func TestS32_UnknownUnicastLeavesByExactlyOneUplink(t *testing.T) {
	r := newRig(t, twoUplinks, "vm1 web", "vm2 web", "vm3 web")
	r.send("vm1", "ext1 vm1 0800", to("u2"))
	r.send("vm2", "ext1 vm2 0800", to("u1"))
}

// A trunk's frames of unknown destination are for the uplink alone in one VLAN, and in another not; those of the only
// port that wants such frames are for the uplink alone.
func TestS32_WhoElseWantsUnknownUnicastIsAskedInEachVLAN(t *testing.T) {
	r := newRig(t, `
  uplinks: [{name: u1, device: dev1}]
  defaults: {security: {forgedTransmits: accept}}
  portGroups:
  - {name: trunk, vlan: {trunk: ["5-7"]}}
  - {name: five, vlan: {access: 5}}
  - {name: six, vlan: {access: 6}}
  - {name: learns, vlan: {access: 6}, security: {macLearning: {enabled: true}}}
  - {name: sniffs, vlan: {access: 7}, security: {promiscuous: accept}}
`, "vm1 trunk", "vm2 five", "vm3 six", "vm4 learns", "vm5 sniffs")
	r.send("vm1", "ext1 vm1 q5 0800", to("u1"))
	r.send("vm1", "ext1 vm1 q6 0800", flooded, to("vm4", "ext1 vm1 0800"), to("u1"))
	r.send("vm1", "ext1 vm1 q7 0800", flooded, to("vm5", "ext1 vm1 0800"), to("u1"))
	r.send("vm2", "ext1 vm2 0800", to("u1", "ext1 vm2 q5 0800"))
	r.send("vm3", "ext1 vm3 0800", flooded, to("vm4"), to("u1", "ext1 vm3 q6 0800"))
	r.send("vm4", "ext1 vm4 0800", to("u1", "ext1 vm4 q6 0800"))
	r.send("vm5", "ext1 vm5 0800", to("u1", "ext1 vm5 q7 0800"))
}

func TestS33_BroadcastReachesEveryPortOfTheVLANAndOneUplink(t *testing.T) {
	r := newRig(t, `
  uplinks: [{name: u1, device: dev1}, {name: u2, device: dev2}]
  portGroups:
  - {name: ten, vlan: {access: 10}}
  - {name: twenty, vlan: {access: 20}}
`, "vm1 ten", "vm2 ten", "vm3 twenty", "vm4 ten")
	r.send("vm1", "all vm1 0806", to("vm2 vm4"), to("u2", "all vm1 q10 0806"))
	r.send("vm4", "01005e000001 vm4 0800", to("vm1 vm2"), to("u1", "01005e000001 vm4 q10 0800"))
	r.send("vm3", "333300000001 vm3 86dd", to("u2", "333300000001 vm3 q20 86dd"))
}

func TestS34_UnicastBetweenPortsOfAHostStaysOnIt(t *testing.T) {
	r := newRig(t, twoUplinks, "vm1 web", "vm2 learn", "vm3 web")
	r.send("vm1", "vm3 vm1 0800", to("vm3"))
	r.send("vm2", "vm3 nest1 0800", to("vm3"))
	r.send("vm3", "nest1 vm3 0800", to("vm2"))
	r.learned("0 nest1 vm2")
	r.send("vm1", "vm1 vm1 0800", dropped("own-destination"))
}

func TestS35_TxUplinkSendsACopyByTheUplinkToo(t *testing.T) {
	r := newRig(t, `
  uplinks: [{name: u1, device: dev1}, {name: u2, device: dev2}]
  portGroups:
  - {name: ten, vlan: {access: 10}}
`, "vm1 ten, txUplink: true", "vm2 ten")
	r.send("vm1", "vm2 vm1 0800", to("vm2"), to("u2", "vm2 vm1 q10 0800"))
	r.send("vm1", "ext1 vm1 0800", to("u2", "ext1 vm1 q10 0800")) // once, not twice
	r.send("vm1", "all vm1 0806", to("vm2"), to("u2", "all vm1 q10 0806"))
	r.send("vm2", "vm1 vm2 0800", to("vm1"))
}

func TestS36_AGuestsBPDUDoesNotLeaveThePortUnlessAllowed(t *testing.T) {
	r := newRig(t, twoUplinks, "vm1 web", "vm2 web")
	for _, bpdu := range []string{"0180c2000000 vm1 0026 424203", "01000ccccccd vm1 0032 aaaa0300000c010b"} {
		r.send("vm1", bpdu, dropped("guest-bpdu"))
	}
	r.change("portGroups:", "checks: {blockGuestBPDU: false}\n  portGroups:")
	for _, bpdu := range []string{"0180c2000000 vm1 0026 424203", "01000ccccccd vm1 0032 aaaa0300000c010b"} {
		r.send("vm1", bpdu, to("vm2 u2"))
	}
}

// What guests send to the addresses of link control is dropped, and the protocols that their port's list names pass as
// any multicast.
func TestS97_AGuestsLinkControlPassesOnlyWhereItMay(t *testing.T) {
	r := newRig(t, twoUplinks+`  - {name: lldp, security: {guestLinkControl: [lldp]}}
  - {name: rest, security: {guestLinkControl: [lacp, eapol, ptp, cdp]}, vlan: {trunk: [0, 10]}}
  - {name: bridge, security: {guestLinkControl: [bpdu]}}
`, "vm1 web", "vm2 lldp", "vm3 rest", "vm4 bridge")
	frames := []struct{ frame, passes string }{
		{"0180c2000001 SRC 8808", ""}, // PAUSE
		{"0180c2000002 SRC 8809", "vm3"},
		{"0180c2000003 SRC 8809", ""},
		{"0180c200000e SRC 88cc", "vm2"},
		{"0180c2000003 SRC 88cc", "vm2"},
		{"0180c2000002 SRC 88cc", ""},
		{"0180c2000003 SRC 888e", "vm3"},
		{"0180c200000f SRC 888e", "vm3"},
		{"0180c200000e SRC 88f7", "vm3"},
		{"0180c200000d SRC 88f7", ""},
		{"0180c200000f SRC 0800", ""},
		{"01000ccccccc SRC 0026 aaaa0300000c2000", "vm3"},
		{"0180c2000000 SRC 0026 424203", "vm4"},
		{"01000ccccccd SRC 0032 aaaa0300000c010b", "vm4"},
	}
	others := map[string]string{"vm1": "vm2 vm3 vm4 u2", "vm2": "vm1 vm3 vm4 u1", "vm3": "vm1 vm2 vm4 u2",
		"vm4": "vm1 vm2 vm3 u1"}
	for _, vm := range []string{"vm1", "vm2", "vm3", "vm4"} {
		for i, f := range frames {
			frame := strings.Replace(f.frame, "SRC", vm, 1)
			switch {
			case f.passes == vm:
				r.send(vm, frame, to(others[vm]))
			case i >= len(frames)-2:
				r.send(vm, frame, dropped("guest-bpdu"))
			default:
				r.send(vm, frame, dropped("guest-link-control"))
			}
		}
	}
	r.send("vm3", "0180c2000002 vm3 q10 8809", to("u2"))                          // the type behind the tag
	r.send("vm3", "0180c2000002 vm3 q10 q10 8809", dropped("guest-link-control")) // a second tag hides it
	r.send("vm1", "0180c2000010 vm1 8809", to("vm2 vm3 vm4 u2"))                  // the first address that is not
	r.learned()
}

// What the physical switch says to those addresses is the host's; a guest whose port's list names the protocol gets a
// copy, in its segment and by the uplink that it uses.
func TestS170_AGuestHearsTheLinkControlThatItMaySpeak(t *testing.T) {
	r := newRig(t, twoUplinks+`  - {name: lldp, security: {guestLinkControl: [lldp]}}
  - {name: rest, security: {guestLinkControl: [lacp, eapol, ptp, cdp]}, vlan: {trunk: [0, 10]}}
  - {name: bridge, security: {guestLinkControl: [bpdu]}}
`, "vm1 web", "vm2 lldp", "vm3 rest", "vm4 bridge")
	for _, f := range []struct{ by, frame, hears string }{
		{"u1", "0180c2000001 ext1 8808", ""}, // PAUSE
		{"u2", "0180c2000002 ext1 8809", "vm3"},
		{"u1", "0180c2000003 ext1 8809", ""},
		{"u1", "0180c200000e ext1 88cc", "vm2"},
		{"u2", "0180c2000003 ext1 888e", "vm3"},
		{"u2", "0180c200000e ext1 88f7", "vm3"},
		{"u2", "01000ccccccc ext1 0026 aaaa0300000c2000", "vm3"},
		{"u1", "0180c2000000 ext1 0026 424203", "vm4"},
		{"u1", "01000ccccccd ext1 0032 aaaa0300000c010b", "vm4"},
	} {
		r.send(f.by, f.frame, to("host", f.frame), to(f.hears, f.frame))
	}
	r.send("u2", "0180c2000002 ext1 q10 8809", to("host vm3", "0180c2000002 ext1 q10 8809"))
	r.learned()
}

func TestS37_LinkLocalFramesFromAnUplinkAreTheHostsOnly(t *testing.T) {
	r := newRig(t, twoUplinks, "vm1 sniff", "vm2 learn")
	for _, dst := range []string{"0180c2000000", "0180c2000002", "0180c200000e", "0180c200000f", "01000ccccccc",
		"01000ccccccd"} {
		r.send("u1", dst+" ext1 0026 424203", to("host"))
		r.send("u2", dst+" ext1 q10 0026 424203", to("host"))
	}
	r.send("u1", "0180c2000010 ext1 0800", to("vm2 host"), refused("vm1", "reverse-path")) // the first that is not
	r.learned()
}

func TestS38_BroadcastReflectedToAnotherUplinkIsRefused(t *testing.T) {
	r := newRig(t, twoUplinks, "vm1 web", "vm2 web", "vm3 both")
	r.send("u1", "all ext1 0806", to("vm2 vm3 host"), refused("vm1", "reverse-path"))
	r.send("u2", "all ext1 0806", to("vm1 vm3 host"), refused("vm2", "reverse-path"))
	r.fact("u2", down) // vm1's own uplink is u1 now
	r.send("u1", "all ext1 0806", to("vm1 vm2 vm3 host"))
	r.change("portGroups:", "checks: {reversePath: false}\n  portGroups:")
	r.fact("u2", up)
	r.send("u1", "all ext1 0806", to("vm1 vm2 vm3 host"))
}

func TestS39_FloodedUnicastFromBothUplinksArrivesOnce(t *testing.T) {
	r := newRig(t, twoUplinks, "vm1 sniff", "vm2 web", "vm3 learn")
	r.send("u1", "ext2 ext1 0800", refused("vm1 vm3", "reverse-path"), dropped("reverse-path"))
	r.send("u2", "ext2 ext1 0800", flooded, to("vm1 vm3"))
	r.send("u1", "vm1 ext1 0800", to("vm1")) // what a port owns it gets from anywhere
	r.learned()
}

func TestS40_WithTheCheckOffItArrivesTwice(t *testing.T) {
	r := newRig(t, "  checks: {reversePathPromiscuous: false}\n"+twoUplinks[1:], "vm1 sniff", "vm2 web", "vm3 learn")
	r.send("u1", "ext2 ext1 0800", flooded, to("vm1 vm3"))
	r.send("u2", "ext2 ext1 0800", flooded, to("vm1 vm3"))
	r.send("u1", "all ext1 0806", to("vm2 host"), refused("vm1 vm3", "reverse-path")) // the other check continues
	r.learned()
}

func TestS91_OurOwnFrameComingBackIsNotCopied(t *testing.T) {
	r := newRig(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups:
  - {name: sniff, security: {promiscuous: accept, forgedTransmits: accept}}
  - {name: learn, security: {macLearning: {enabled: true}, forgedTransmits: accept}}
`, "vm1 sniff", "vm2 sniff", "vm3 learn")
	all3 := "vm1 vm2 vm3"
	for name, at := range map[string]string{"nest1": "vm1", "nest3": "vm3", "vm1": "vm1"} {
		t.Run(name, func(t *testing.T) {
			// forged, learned, own
			others := map[string]outcome{"vm1": to("vm2 vm3 u1"), "vm3": to("vm1 vm2 u1")}[at]
			r.send(at, "ext2 "+name+" 0800", flooded, others)
			r.after(999 * time.Millisecond)
			r.send("u1", "ext2 "+name+" 0800", refused(all3, "reflected"), dropped("reflected"))
			r.send("u1", "all "+name+" 0806", to("host"), refused(all3, "reflected"))
			r.send("u1", "ext2 "+name+" q7 0800", dropped("unknown-unicast")) // another segment: nobody is there
			r.send("u1", "vm2 "+name+" 0800", to("vm2"), refused("vm1", "reflected"))
			r.after(time.Millisecond)
			r.send("u1", "ext2 "+name+" 0800", flooded, to(all3))
		})
	}
	r.learned()
}

func TestS91_D14_GroupsAndCopiesOfUnicastHaveASettingEach(t *testing.T) {
	const one = `
  checks: {%s: false}
  uplinks: [{name: u1, device: dev1}]
  portGroups: [{name: sniff, security: {promiscuous: accept}}]
`
	for off, want := range map[string][2][]outcome{
		"reversePath":            {{to("vm1 host")}, {refused("vm1", "reflected"), dropped("reflected")}},
		"reversePathPromiscuous": {{to("host"), refused("vm1", "reflected")}, {flooded, to("vm1")}},
	} {
		t.Run(off, func(t *testing.T) {
			r := newRig(t, fmt.Sprintf(one, off), "vm1 sniff")
			r.send("vm1", "ext2 vm1 0800", to("u1"))
			r.send("u1", "all vm1 0806", want[0]...)
			r.send("u1", "ext2 vm1 0800", want[1]...)
		})
	}
}

func TestS91_WithTheChecksOffReflectionsAreCopied(t *testing.T) {
	r := newRig(t, `
  checks: {reversePath: false, reversePathPromiscuous: false}
  uplinks: [{name: u1, device: dev1}]
  portGroups: [{name: sniff, security: {promiscuous: accept}}]
`, "vm1 sniff")
	r.send("vm1", "ext2 vm1 0800", to("u1"))
	r.send("u1", "ext2 vm1 0800", flooded, to("vm1"))
	r.send("u1", "all vm1 0806", to("vm1 host"))
}

func TestS94_D15_OneDispositionForTheFrameAndAReasonForEveryCopy(t *testing.T) {
	r := newRig(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups:
  - {name: web}
  - {name: shut, blocked: true}
`, "vm1 web", "vm2 shut", "vm3 web", "vm4 web")
	r.fact("vm3", down)
	r.fact("vm4", func(f *plan.Fact) { f.MTU = 1400 })
	r.fact("u1", down)
	r.send("vm1", "all vm1 0806", to("vm4"), refused("vm2", "receiver-blocked"), refused("vm3", "receiver-down"),
		noUplink)
	r.send("vm1", "all vm1 0800 [1500]", refused("vm2", "receiver-blocked"), refused("vm3", "receiver-down"),
		refused("vm4", "mtu-exceeded"), noUplink, dropped("mtu-exceeded")) // the reason with the lowest number
	r.send("vm1", "vm3 vm1 0800", refused("vm3", "receiver-down"), dropped("receiver-down"))
	r.send("vm1", "ext1 vm1 0800", noUplink, dropped("no-uplink"))
	r.fact("u1", up)
	r.send("vm1", "all vm1 0806", to("vm4 u1"), refused("vm2", "receiver-blocked"), refused("vm3", "receiver-down"))
}

func TestS94_ASwitchWithoutReceiversSaysSo(t *testing.T) {
	r := newRig(t, "  portGroups: [{name: web}]", "vm1 web")
	r.send("vm1", "all vm1 0806", dropped("no-receiver"))
	r.send("vm1", "ext1 vm1 0800", dropped("unknown-unicast"))
}

func TestS94_MalformedFramesAreDroppedWithTheirReason(t *testing.T) {
	r := newRig(t, `
  portGroups: [{name: trunk, vlan: {trunk: ["0-4094"]}}]
`, "vm1 trunk", "vm2 trunk")
	for _, bad := range []string{"all vm1 q10 0800 [0]", "all vm1 q10 0800 [1]", "all vm1 ad10 q7 0800 [0]",
		"all vm1 q10 q7 0800 [1]"} {
		r.send("vm1", bad, dropped("malformed"))
	}
	for _, good := range []string{"all vm1 0806 [1]", "all vm1 q10 0806 [2]", "all vm1 q10 q7 0806 [2]",
		"all vm1 q10 q7 q5 [2]"} {
		r.send("vm1", good, to("vm2"))
	}
}

func TestS94_FramesLongerThanTheMTUAreDropped(t *testing.T) {
	r := newRig(t, `
  mtu: 1500
  uplinks: [{name: u1, device: dev1}]
  portGroups: [{name: trunk, vlan: {trunk: ["0-4094"]}}, {name: ten, vlan: {access: 10}}]
`, "vm1 trunk", "vm2 ten")
	r.send("vm1", "all vm1 0800 [1501]", dropped("mtu-exceeded"))
	r.send("vm1", "all vm1 q10 0800 [1501]", dropped("mtu-exceeded"))
	r.send("vm1", "all vm1 q10 0800 [1500]", to("u1"), to("vm2", "all vm1 0800 [1500]")) // tags do not count
	r.send("u1", "vm1 ext1 q10 0800 [1501]", dropped("mtu-exceeded"))
	r.send("u1", "all ext1 q10 0800 [1501]", to("host"))
}

func TestS96_WhatIsTheHostsReachesTheHost(t *testing.T) {
	r := newRig(t, `
  uplinks:
  - {name: u1, device: dev1}
  - {name: u2, device: dev2, blocked: true}
  - {name: u3, device: dev3, vlans: ["20-30"]}
  portGroups: [{name: sniff, security: {promiscuous: accept}}]
`, "vm1 sniff", "vm2 sniff", "vm3 sniff")
	r.send("u1", "dev1 ext1 0800", to("host")) // and no promiscuous port
	r.send("u1", "dev1 ext1 0800 [1600]", to("host"))
	r.send("u1", "dev1 ext1 q9 0800", to("host"))
	for at, mac := range map[string]string{"u2": "dev2", "u3": "dev3"} {
		t.Run(at, func(t *testing.T) {
			// whatever the switch decides
			r.send(at, mac+" ext1 0800", to("host"))
			r.send(at, "all ext1 0806", to("host"))
			r.send(at, "01005e000001 ext1 q5 0800", to("host"))
		})
	}
	r.send("u2", "ext2 ext1 0800", dropped("port-blocked"))
	r.send("u3", "ext2 ext1 0800", dropped("uplink-vlan"))
}

func TestS96_D16_APortThatHasTheDevicesMACGetsItsUnicast(t *testing.T) {
	r := newRig(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups: [{name: ten, vlan: {access: 10}}]
`, "vm1 ten")
	r.fact("u1", func(f *plan.Fact) { f.DeviceMAC = plan.MAC(word("vm1")) })
	r.send("u1", "vm1 ext1 q10 0800", to("vm1", "vm1 ext1 0800"))
	r.send("u1", "vm1 ext1 0800", to("host")) // the port has no share in that segment
	r.send("u1", "all ext1 q10 0806", to("vm1", "all ext1 0806"), to("host"))
	r.fact("vm1", down)
	r.send("u1", "vm1 ext1 q10 0800", refused("vm1", "receiver-down"), dropped("receiver-down"))
	r.gone("vm1")
	r.send("u1", "vm1 ext1 q10 0800", to("host"))
}
