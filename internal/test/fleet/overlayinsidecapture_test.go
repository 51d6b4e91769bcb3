package fleet

import (
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// TestS112_CapturesShowTheVLANInside: at a trunk inside a VNI, frames have the tags that its owner gives them and gets.
func TestS112_CapturesShowTheVLANInside(t *testing.T) {
	testkit.Long(t, "TestS84_CapturesShowFramesInTheTunnel has captures at a tunnel")
	t.Parallel()
	r := newOverlayRig(t, false, "db")
	for i, h := range r.hosts {
		h.Configure(r.nestedConfig(i, `"0", "10", "20-22"`, "db"))
	}
	r.nested("before the capture")
	c := r.hosts[0].captures(api.Capture{Ports: []string{"one"}})
	one, two, all := r.guests[0][0], r.guests[1][0], cable.Broadcast()
	for _, f := range []struct {
		frame   []byte
		segment string
	}{
		{taggedInside(all, cable.MAC(21), 20, 5, 0, "of VLAN 20"), "vni:5000/20"},
		{taggedInside(all, cable.MAC(21), 22, 0, 7, "two tags"), "vni:5000/22"},
		{cable.Frame(all, cable.MAC(21), 0, "untagged"), "vni:5000"},
	} {
		one.Send(f.frame)
		two.Expect(f.frame, "from trunk to trunk")
		c.tells("what the owner sends", f.frame, "one admit "+f.segment)
	}
	for _, f := range []struct {
		frame   []byte
		segment string
	}{
		{taggedInside(all, cable.MAC(22), 21, 3, 0, "back in VLAN 21"), "vni:5000/21"},
		{cable.Frame(all, cable.MAC(22), 0, "back untagged"), "vni:5000"},
	} {
		two.Send(f.frame)
		one.Expect(f.frame, "from trunk to trunk")
		c.tells("what the owner gets", f.frame, "one deliver of tunnel "+f.segment)
	}
	c.end()
}
