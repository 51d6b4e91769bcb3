package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"heddle/internal/observe"
	"heddle/internal/plan"
)

// bonded is teamed with a guest whose bond has the ports a and b.
func bonded(t *testing.T) string {
	t.Helper()
	cfg := fmt.Sprintf(teamed, "")
	for _, edit := range [][2]string{
		{"defaults: {", "defaults: {security: {forgedTransmits: accept, macChanges: accept}, "},
		{"{name: a, ", "{name: a, owner: guest, "}, {"{name: b, ", "{name: b, owner: guest, "},
	} {
		if !strings.Contains(cfg, edit[0]) {
			t.Fatalf("no %q in %s", edit[0], cfg)
		}
		cfg = strings.Replace(cfg, edit[0], edit[1], 1)
	}
	return cfg
}

// A bond in a guest gives both adapters one MAC. After a failover of the uplink this MAC is announced once, from the
// port to which frames for it go, and not from the standby, whose uplink may lead to another physical switch.
func TestS49_S111_ASharedMACIsAnnouncedFromThePortThatHasIt(t *testing.T) {
	const shared = "0a"
	mac := plan.MAC{2, 0, 0, 0, 0, 0x0a}
	for _, c := range []struct {
		what     string
		seen     plan.MAC // MAC of port b's adapter
		speakers []observe.Speaker
		want     string // VLAN and MAC of the announcement: a is in VLAN 10, b in 100
		own      string // VLAN and MAC of the other port's announcement
	}{
		{"b has it too, and a sends", mac, nil, "10 " + shared, ""},
		{"b has it too, and sends", mac, []observe.Speaker{{Owner: id("a"), MAC: mac, Port: id("b")}}, "100 " + shared,
			""},
		{"b sends from it, and has its own", plan.MAC{2, 0, 0, 0, 0, 0x0b},
			[]observe.Speaker{{Owner: id("a"), MAC: mac, Port: id("b")}}, "100 " + shared, "100 b"},
		{"each has its own", plan.MAC{2, 0, 0, 0, 0, 0x0b}, nil, "10 " + shared, "100 b"},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := newTeamRig(t, "")
			r.dev.byName["vb"].Peer.End.MAC = c.seen
			if err := r.restart(bonded(t)); err != nil {
				t.Fatal(err)
			}
			r.announces()
			r.kernel.speakers = c.speakers
			r.link("eno1", false)
			u2 := r.dev.byName["eno2"].Index
			want := []string{}
			for _, s := range []string{strings.Replace(c.want, " 0", " ", 1), c.own, "- c", "20 c", "21 c", "- d"} {
				if s != "" {
					want = append(want, fmt.Sprintf("%d %s", u2, s))
				}
			}
			slices.Sort(want)
			if got := r.announced(len(want)); !slices.Equal(got, want) {
				t.Errorf("%s: announced\n%q, want\n%q", c.what, got, want)
			}
		})
	}
}
