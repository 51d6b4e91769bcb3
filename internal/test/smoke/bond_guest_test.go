//go:build guest

package smoke

import (
	"errors"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/uplinks/announce"
)

const bondName = "bond9"

// newBond makes a bond of the devices, which goes with the test, in the namespace of the calling thread.
func newBond(mode netlink.BondMode, members ...string) error {
	bond := netlink.NewLinkBond(netlink.LinkAttrs{Name: bondName})
	bond.Mode, bond.Miimon = mode, 20
	if mode == netlink.BOND_MODE_802_3AD {
		bond.LacpRate = netlink.BOND_LACP_RATE_FAST
	}
	if err := netlink.LinkAdd(bond); err != nil {
		return err
	}
	for _, name := range members {
		l, err := netlink.LinkByName(name)
		if err == nil {
			// A member must be down when it joins.
			err = errors.Join(netlink.LinkSetDown(l), netlink.LinkSetMaster(l, bond))
		}
		if err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(bond)
}

func removeBond(t *testing.T) {
	t.Helper()
	testkit.Remove(t, bondName, func() error {
		l, err := netlink.LinkByName(bondName)
		if err == nil {
			err = netlink.LinkDel(l)
		}
		return err
	})
}

// active is the member that an active-backup bond sends by; "" for none.
func active(t *testing.T) string {
	t.Helper()
	l, err := netlink.LinkByName(bondName)
	if err != nil {
		t.Fatal(err)
	}
	index := l.(*netlink.Bond).ActiveSlave
	if index <= 0 {
		return ""
	}
	m, err := netlink.LinkByIndex(index)
	if err != nil {
		t.Fatal(err)
	}
	return m.Attrs().Name
}

// TestNIC_ActiveBackupBondAsUplink: frames pass both ways through a bond of two cards, also after the active one
// failed.
func TestNIC_ActiveBackupBondAsUplink(t *testing.T) {
	members := strings.Fields(os.Getenv(membersVar))
	if len(members) != 2 {
		t.Fatalf("%s names %q, not two network cards", membersVar, members)
	}
	if err := newBond(netlink.BOND_MODE_ACTIVE_BACKUP, members...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeBond(t) })
	before := map[string]map[string]bool{}
	for _, name := range append(members, bondName) {
		before[name] = features(t, name)
	}
	if !before[members[1]]["rx-lro"] {
		t.Errorf("%s merges no segments: the test shows little", members[1])
	}
	r := newNICRig(t, bondName)
	r.trips()
	if features(t, members[1])["rx-lro"] {
		t.Errorf("the bond's member %s still merges segments", members[1])
	}
	failed := active(t)
	l, err := netlink.LinkByName(failed)
	if err == nil {
		err = netlink.LinkSetDown(l)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Await("the bond sends by its other member", func() bool { now := active(t); return now != "" && now != failed })
	// What is under way while the cards change over may be lost; from then on nothing is.
	r.Await("frames pass by the other member", func() bool { return r.trip(r.a, cable.MAC(1), 0, time.Second) })
	r.trips()
	r.refusesMembers(members[0])
	if err := r.Heddle("down", "--purge"); err != nil {
		t.Fatal(err)
	}
	for name, was := range before {
		if is := features(t, name); !maps.Equal(was, is) {
			t.Errorf("features of %s before %v, after %v", name, was, is)
		}
	}
}

// refusesMembers: a bond's member, and a device in a bridge, are named with what to do.
func (r *nicRig) refusesMembers(member string) {
	r.T.Helper()
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br9"}}
	b, err := netlink.LinkByName("port-b")
	if err == nil {
		err = errors.Join(netlink.LinkAdd(bridge), netlink.LinkSetMaster(b, bridge))
	}
	if err != nil {
		r.T.Fatal(err)
	}
	r.T.Cleanup(func() { testkit.Remove(r.T, "br9", func() error { return netlink.LinkDel(bridge) }) })
	r.Configure(strings.ReplaceAll(nicConfig, "%s", member))
	s, err := r.State(r.T.Context())
	if err != nil {
		r.T.Fatal(err)
	}
	if u := s.Uplinks[0]; u.State != api.Pending || !strings.Contains(u.Reason, "member of bond "+bondName+": use "+
		bondName) {
		r.T.Errorf("a member as uplink: %s, %q", u.State, u.Reason)
	}
	for _, p := range s.Ports {
		if p.Name == "b" && (p.State != api.Pending || !strings.Contains(p.Reason, "in bridge br9: take it out")) {
			r.T.Errorf("a device in a bridge as port: %s, %q", p.State, p.Reason)
		}
	}
}

// TestNIC_LACPBondAsUplink: the same with 802.3ad; the peer is a bond in another namespace, whose owner sends frames
// back.
func TestNIC_LACPBondAsUplink(t *testing.T) {
	peer := testkit.NS(t, "lacp")
	cables := []string{"lacp0", "lacp1"}
	if err := plugBoth(peer, cables); err != nil {
		t.Fatal(err)
	}
	if err := peer.Do(func() error { return newBond(netlink.BOND_MODE_802_3AD, cables...) }); err != nil {
		t.Fatal(err)
	}
	if err := newBond(netlink.BOND_MODE_802_3AD, cables...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeBond(t) })
	reflectIn(t, peer, bondName)
	r := newNICRig(t, bondName)
	r.Await("both members carry traffic", func() bool { return collecting(t, cables) == 2 })
	r.trips()
	err := peer.Do(func() error {
		l, err := netlink.LinkByName(cables[0])
		if err != nil {
			return err
		}
		return netlink.LinkSetDown(l)
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Await("one member carries traffic", func() bool { return collecting(t, cables) == 1 })
	r.trips()
}

// TestNIC_S49_GuestsBehindABondAreAnnounced: when an active-backup bond sends by another member, the physical network
// hears of the guests there, in their VLANs.
func TestNIC_S49_GuestsBehindABondAreAnnounced(t *testing.T) {
	peer := testkit.NS(t, "backup")
	members := []string{"backup0", "backup1"}
	if err := plugBoth(peer, members); err != nil {
		t.Fatal(err)
	}
	ends := map[string]*cable.End{}
	for _, name := range members {
		if err := peer.Do(func() error { return setUp(name) }); err != nil {
			t.Fatal(err)
		}
		ends[name] = cable.Open(t, peer, name)
	}
	if err := newBond(netlink.BOND_MODE_ACTIVE_BACKUP, members...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeBond(t) })
	r := newNICRig(t, bondName)
	failed := active(t)
	err := peer.Do(func() error {
		l, err := netlink.LinkByName(failed)
		if err != nil {
			return err
		}
		return netlink.LinkSetDown(l)
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Await("the bond sends by its other member", func() bool { now := active(t); return now != "" && now != failed })
	other := ends[active(t)]
	for _, w := range []struct {
		mac  [6]byte
		vlan uint16
	}{{cable.MAC(1), 10}, {cable.MAC(2), 0}} {
		other.Expect(announce.RARP(w.mac, announce.Tag{VID: w.vlan}),
			"S49: a guest is announced by the bond's other member")
	}
}

// setUp sets the device up, in the namespace of the calling thread.
func setUp(name string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(l)
}

// plugBoth makes veth pairs with the same names on both sides.
func plugBoth(peer *netns.NS, names []string) error {
	handle, err := peer.Handle()
	if err != nil {
		return err
	}
	defer handle.Close()
	for _, name := range names {
		v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name,
			PeerNamespace: netlink.NsFd(int(handle))}
		if err := netlink.LinkAdd(v); err != nil {
			return err
		}
	}
	return nil
}

// reflectIn answers what comes to the device, as the guest's wires do.
func reflectIn(t *testing.T, ns *netns.NS, device string) {
	t.Helper()
	e := cable.Open(t, ns, device)
	done := make(chan error, 1)
	go func() { done <- e.Reflect(t.Context(), cable.MAC(99)) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// collecting counts the members whose own and whose partner's end collect and distribute (IEEE 802.1AX, Actor_State).
func collecting(t *testing.T, members []string) (n int) {
	t.Helper()
	const (
		linkUp = 0 // BOND_LINK_UP
		both   = 0x30
	)
	for _, name := range members {
		l, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := l.Attrs().Slave.(*netlink.BondSlave); ok && s.MiiStatus == linkUp &&
			s.AdActorOperPortState&both == both && s.AdPartnerOperPortState&both == both {
			n++
		}
	}
	return n
}
