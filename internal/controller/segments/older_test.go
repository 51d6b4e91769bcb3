package segments

import (
	"testing"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/overlay/span"
)

// readable is an update as the agent's version reads it: one before knows no fields for VLANs inside a VNI.
func (a *agent) readable(u *controllerv1.SegmentUpdate) *controllerv1.SegmentUpdate {
	if !a.older {
		return u
	}
	u = proto.CloneOf(u)
	u.PutInside, u.RemovedInside = nil, nil
	for _, p := range u.GetPut() {
		p.GetItem().Vlan = nil
	}
	return u
}

// inside makes a MAC that the host has learned one in these VLANs of segment 5, 0 for the untagged one.
func (a *agent) inside(n byte, vlans ...uint16) {
	items := map[span.Key]span.Claim{}
	for _, vlan := range vlans {
		items[key(n).In(vlan)] = span.Claim{Source: span.Learned, Untagged: vlan == 0}
	}
	a.say(map[span.VNI]map[span.Key]span.Claim{5: items})
}

// has is at which host an agent takes a MAC of segment 5 to be in a tagged VLAN, or in none in particular; "" for none.
func (a *agent) has(n byte, vlan uint16) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.known.Content(5); c != nil {
		return c.Places[key(n).In(vlan)].Host
	}
	return ""
}

// TestS112_OneMACIsAtSeveralHostsInSeveralVLANs: hosts are told in which VLAN it is at which host, also by another
// controller; a host of the version before is told nothing of it, so that its frames go to all, and of a MAC that is at
// one host in all VLANs it is told that host. It follows when a MAC is in one place again.
func TestS112_OneMACIsAtSeveralHostsInSeveralVLANs(t *testing.T) {
	h := newHub(t)
	a, b, c, old := newAgent(t, "a"), newAgent(t, "b"), newAgent(t, "c"), newAgent(t, "d")
	old.older = true
	a.inside(9, 10, 30)
	b.inside(9, 20)
	c.have(map[span.VNI][]byte{5: {3}})
	old.have(map[span.VNI][]byte{5: {4}})
	for _, one := range []*agent{a, b, c, old} {
		one.connect(h)
		one.is("it is current", func() bool { return one.current })
	}
	await(t, "each VLAN has its host", func() bool {
		return c.has(9, 10) == "a" && c.has(9, 30) == "a" && c.has(9, 20) == "b" && c.has(9, 0) == "" &&
			b.has(9, 10) == "a"
	})
	await(t, "the older host knows the others", func() bool { return old.has(3, 0) == "c" && c.has(4, 0) == "d" })
	if got := old.has(9, 0); got != "" {
		t.Errorf("the older host has the MAC at %s, in whatever VLAN", got)
	}
	b.inside(9)
	await(t, "it is at one host in all VLANs", func() bool { return old.has(9, 0) == "a" && c.has(9, 20) == "" })
	b.inside(9, 0)
	await(t, "it is at another one untagged", func() bool { return old.has(9, 0) == "" && c.has(9, 0) == "b" })
	old.leave()
	a.inside(8, 10)
	old.connect(h)
	old.is("it is current again", func() bool { return old.current })
	await(t, "it is sent what is another", func() bool { return old.has(9, 0) == "b" && old.has(8, 0) == "a" })
	old.leave()
	old.connect(h)
	old.is("it is current once more", func() bool { return old.current })
	old.mu.Lock()
	defer old.mu.Unlock()
	if old.updates != 0 {
		t.Errorf("a host of the version before that knows all is sent %d updates", old.updates)
	}
}
