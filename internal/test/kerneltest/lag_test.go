package kerneltest

import (
	"fmt"
	"slices"
	"testing"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

const lagged = `
  kind: distributed
  uplinks: [{name: u1, device: dev1}, {name: u2, device: dev2}, {name: u3, device: dev3}, {name: u4, device: dev4}]
  lags: [{name: lag, uplinks: [u3, u1, u2], hash: %s}]
  portGroups:
  - {name: web, teaming: {active: [lag], standby: [u4]}, security: {forgedTransmits: accept}, vlan: {trunk: ["0-4094"]}}
  - {name: plain, teaming: {active: [u4]}, vlan: {trunk: ["0-4094"]}}
`

var lagMembers = []string{"u3", "u1", "u2"}

// member is the member that frame-rules §4 gives to a frame of these words, out of those usable.
func member(usable []string, words ...uint32) string {
	var x uint32
	for _, w := range words {
		x = (x ^ w) * 0x9e3779b1
		x ^= x >> 15
	}
	g := x * 0x85ebca6b >> 24
	for left := slices.Clone(lagMembers); ; {
		i := int(g) % len(left)
		if slices.Contains(usable, left[i]) {
			return left[i]
		}
		left = slices.Delete(left, i, i+1)
	}
}

func TestS52_TheLAGsHashChoosesTheMember(t *testing.T) {
	const (
		ip4      = "0800 4500002800000000400100000a0000010a000002 9c4001bb [20]" // ICMP
		tcp4     = "0800 4500002800000000400600000a0000010a000002 9c4001bb [20]"
		options4 = "0800 4600002c00000000408400000a0000010a000002 01010101 9c4001bb [8]"
		wrong4   = "0800 4400002800000000400600000a0000010a000002 9c4001bb [20]"
		first4   = "0800 4500002800002000401100000a0000010a000002 9c4001bb [20]"
		later4   = "0800 4500002800000001401100000a0000010a000002 9c4001bb [20]"
		udp6     = "86dd 6000000000141140 fd000000000000000000000000000001 fd000000000000000000000000000002 9c4001bb " +
			"[20]"
		more6 = "86dd 6000000000140040 fd000000000000000000000000000001 fd000000000000000000000000000002 9c4001bb " +
			"[20]"
		arp     = "0806 0001080006040001"
		stacked = "ad7 " + tcp4
	)
	// ext1 and vm1 are 0e:00:00:00:00:01 and 02:00:00:00:00:01
	macs := []uint32{0x0e000000, 0x00010200, 0x00000001}
	ips4 := []uint32{0x0a000001, 0x0a000002}
	ips6 := []uint32{0xfd000000, 0, 0, 1, 0xfd000000, 0, 0, 2}
	const ports = 0x9c4001bb
	with := func(words []uint32, more ...uint32) []uint32 { return slices.Concat(words, more) }
	for _, c := range []struct {
		set, frame string
		words      []uint32
	}{
		{"mac", tcp4, macs}, {"mac", "q5 " + udp6, macs}, {"mac", arp, macs},
		{"ip", tcp4, ips4}, {"ip", "q5 " + first4, ips4}, {"ip", udp6, ips6}, {"ip", arp, macs},
		{"ip", "q5 " + stacked, ips4},
		{"ip-vlan", tcp4, with(ips4, 0)}, {"ip-vlan", "q5 " + tcp4, with(ips4, 5)},
		{"ip-vlan", "q4094 " + arp, with(macs, 4094)}, {"ip-vlan", "q0 " + udp6, with(ips6, 0)},
		{"ip-port", tcp4, with(ips4, ports)}, {"ip-port", "q5 " + udp6, with(ips6, ports)},
		{"ip-port", options4, with(ips4, ports)},
		{"ip-port", ip4, ips4}, {"ip-port", wrong4, macs}, {"ip-port", first4, ips4}, {"ip-port", later4, ips4},
		{"ip-port", more6, ips6}, {"ip-port", arp, macs},
		{"ip-port", "q5 0800 4500002800000000400600000a0000010a000002 9c4001 [0]", ips4},    // ends within the ports
		{"ip-port", "q5 0800 4500002800000000400600000a0000010a0000 [0]", macs},             // ends within the header
		{"ip-port", "q5 86dd 6000000000141140 fd000000000000000000000000000001 [15]", macs}, // likewise
		// a whole header: bytes 0 to 15
		{"ip-port", "q5 86dd 6000000000141140 fd000000000000000000000000000001 [16]", nil},
		{"ip-port-vlan", tcp4, with(ips4, 0, ports)}, {"ip-port-vlan", "q5 " + tcp4, with(ips4, 5, ports)},
		{"ip-port-vlan", "q5 " + more6, with(ips6, 5)}, {"ip-port-vlan", "q5 " + arp, with(macs, 5)},
	} {
		if c.words == nil {
			c.words = []uint32{0xfd000000, 0, 0, 1, 0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f}
		}
		t.Run(c.set+" "+c.frame, func(t *testing.T) {
			r := newRig(t, fmt.Sprintf(lagged, c.set), "vm1 web")
			r.send("vm1", "ext1 vm1 "+c.frame, to(member(lagMembers, c.words...)))
		})
	}
}

func TestS52_AFailedMembersShareGoesToTheOthersAndNothingElseMoves(t *testing.T) {
	r := newRig(t, fmt.Sprintf(lagged, "ip-port"), "vm1 web")
	const conversations = 60
	// spread sends a frame of every conversation, which has to leave by the member of its own.
	spread := func(usable ...string) (use map[string]int, by []string) {
		use = map[string]int{}
		for n := range conversations {
			ports := uint32(30000+n)<<16 | 53
			out := member(usable, 0x0a000001, 0x0a000002, ports)
			r.send("vm1", fmt.Sprintf("ext1 vm1 0800 4500002800000000401100000a0000010a000002 %08x [20]", ports),
				to(out))
			use[out]++
			by = append(by, out)
		}
		return use, by
	}
	all, before := spread("u1", "u2", "u3")
	if min(all["u1"], all["u2"], all["u3"]) < conversations/5 {
		t.Errorf("%d conversations are spread as %v", conversations, all)
	}
	r.fact("u1", func(f *plan.Fact) { f.Out = &problem.Problem{Code: problem.LACPNotInSync} })
	_, after := spread("u2", "u3")
	share := map[string]int{}
	for n := range conversations {
		if before[n] == "u1" {
			share[after[n]]++
		} else if after[n] != before[n] {
			t.Errorf("conversation %d moved from %s to %s", n, before[n], after[n])
		}
	}
	if share["u2"] < all["u1"]/4 || share["u3"] < all["u1"]/4 {
		t.Errorf("the share of the member that is out went to %v", share)
	}
	r.fact("u2", down)
	spread("u3")
	r.fact("u3", down)
	r.send("vm1", "ext1 vm1 0800", to("u4")) // S45
	r.fact("u1", func(f *plan.Fact) { f.Out = nil })
	spread("u1")
}

func TestS52_S38_EveryMemberIsTheReceiversOwn(t *testing.T) {
	r := newRig(t, fmt.Sprintf(lagged, "mac"), "vm1 web", "vm2 plain")
	for _, u := range []string{"u1", "u2", "u3"} {
		r.send(u, "all ext1 0806", to("vm1 host"), refused("vm2", "reverse-path"))
	}
	r.send("u4", "all ext1 0806", to("vm2 host"), refused("vm1", "reverse-path"))
	r.fact("u1", func(f *plan.Fact) { f.Out = &problem.Problem{Code: problem.LACPNotInSync} })
	r.send("u1", "all ext1 0806", to("vm1 host"), refused("vm2", "reverse-path"))
	r.fact("u2", down)
	r.fact("u3", down)
	r.send("u4", "all ext1 0806", to("vm1 vm2 host"))
	r.send("u1", "all ext1 0806", to("host"), refused("vm1 vm2", "reverse-path"))
}
