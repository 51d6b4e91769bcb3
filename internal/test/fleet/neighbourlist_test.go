package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// listed is what a host knows of who has an address, by "heddle segment neighbours" with these flags.
func (h *host) listed(flags ...string) (n api.Neighbours) {
	h.T.Helper()
	out := h.must(append([]string{"segment", "neighbours", "-o", "json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &n); err != nil {
		h.T.Fatalf("%v\n%s", err, out)
	}
	return n
}

// words are what matters of a list here.
func words(n api.Neighbours) (all []string) {
	for _, b := range n.Neighbours {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s %s%s", b.Address, b.MAC, b.Whose, b.Port,
			b.Endpoint)))
	}
	return all
}

// TestS85_AHostShowsWhoHasAnAddress: a host lists what it would answer, where each owner is and how that is known, and
// what two stations claim; it counts what it answered, held back and did not believe, and its metrics have the same.
func TestS85_AHostShowsWhoHasAnAddress(t *testing.T) {
	t.Parallel()
	r := &neighbourRig{overlayRig: newOverlayRig(t, false, "web")}
	h, here, there, third := r.hosts[0], r.at(2), r.at(11), r.at(77)
	r.everywhere(r.guests[0][1], r.announces(here, here.ip), "S85: an announcement passes")
	r.everywhere(r.guests[1][0], r.announces(there, there.ip), "S85: an announcement passes")
	r.everywhere(r.kernel, r.announces(third, third.ip), "S85: an announcement passes")
	r.introduces(0)
	r.nobodyAsked(0, there.mac, there.ip)
	want := []string{"10.0.0.1 02:00:00:00:00:01 port one", "10.0.0.2 02:00:00:00:00:02 port two",
		"10.0.0.11 02:00:00:00:00:0b endpoint " + r.addr[1], "10.0.0.77 02:00:00:00:00:4d endpoint " + r.addr[2]}
	if got := words(h.listed("5000")); !slices.Equal(got, want) {
		t.Errorf("S85: the host shows\n%q, want\n%q", got, want)
	}
	for flags, want := range map[string][]string{
		"--whose port": want[:2], "5000 --mac 02:00:00:00:00:4d": want[3:], "--address 10.0.0.11": want[2:3],
		"--limit 1": want[:1], "6000": nil, "--contested": nil, "--whose controllers": nil, "--switch lab": want,
	} {
		if got := words(h.listed(strings.Fields(flags)...)); !slices.Equal(got, want) {
			t.Errorf("S85: with %s the host shows\n%q, want\n%q", flags, got, want)
		}
	}
	if n := h.listed("--limit", "1").LeftOff; n != 3 {
		t.Errorf("%d addresses are left off, want 3", n)
	}
	r.contested()
	r.spoofedBy(cable.MAC(2), cable.MAC(66))
	r.shownContested()
}

// spoofedBy: a guest of the first host names another MAC than its own.
func (r *neighbourRig) spoofedBy(from, owner [6]byte) {
	r.t.Helper()
	r.everywhere(r.guests[0][1], r.claims(from, owner, r.at(11).ip), "what a guest says of another MAC")
}

// shownContested: the host shows the address that two stations claim, and what it has counted.
func (r *neighbourRig) shownContested() {
	r.t.Helper()
	h, ip := r.hosts[0], r.at(40).ip.String()
	n := h.listed("--contested")
	one, other := plan.MAC(r.at(77).mac).String(), plan.MAC(r.at(11).mac).String()
	if len(n.Neighbours) != 1 || n.Neighbours[0].Address != ip || n.Neighbours[0].MAC != one ||
		n.Neighbours[0].Rival != other {
		r.t.Errorf("S85: two claim %s, and the host shows %+v", ip, n.Neighbours)
	}
	c := api.NeighbourCounts{Switch: "lab", Answered: h.Refused("tunnel", "neighbour-answered"),
		Spoofed:   h.neighbourCount(r.t, abi.NeighbourSpoofed),
		Contested: h.neighbourCount(r.t, abi.NeighbourContested)}
	if len(n.Counts) != 1 || n.Counts[0] != c || c.Answered == 0 || c.Spoofed == 0 || c.Contested == 0 {
		r.t.Errorf("S85: the host shows the counts %+v, want %+v", n.Counts, c)
	}
	metrics := []string{
		fmt.Sprintf("heddle_neighbour_requests_total{result=\"answered\",switch=\"lab\"} %d", c.Answered),
		fmt.Sprintf("heddle_neighbour_spoofed_total{switch=\"lab\"} %d", c.Spoofed),
		fmt.Sprintf("heddle_neighbour_contested_claims_total{switch=\"lab\"} %d", c.Contested),
		"heddle_neighbour_contested_addresses{switch=\"lab\"} 1",
		"heddle_uplink_refused_copies_total{reason=\"neighbour-answered\",switch=\"lab\",uplink=\"tunnel\"} "}
	var text string
	h.Await("S85: the metrics count contested addresses", func() bool {
		text = h.must("metrics")
		return !slices.ContainsFunc(metrics, func(line string) bool { return !strings.Contains(text, "\n"+line) })
	})
}

// TestS85_S86_AGuestBindsOnlyItsOwnAddresses: what an address guard drops binds nothing, neither on the guest's host
// nor on others: the owner's host goes on answering for the owner, and the address is not contested.
func TestS85_S86_AGuestBindsOnlyItsOwnAddresses(t *testing.T) {
	testkit.Long(t, "TestS112_RulesOfATrunkHoldInItsVLANs has an address guard, and "+
		"TestS85_AHostShowsWhoHasAnAddress has who has an address")
	for _, v6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "ARP", true: "ND"}[v6], func(t *testing.T) {
			t.Parallel()
			r := &neighbourRig{newOverlayRig(t, false, "web"), v6}
			r.guarded()
		})
	}
}

func (r *neighbourRig) guarded() {
	r.t.Helper()
	thief, owner := r.at(2), r.at(11)
	h := r.hosts[0]
	h.Configure(strings.NewReplacer("{name: web, overlay: {vni: 5000}}", "{name: web, overlay: {vni: 5000}, "+
		"overrides: {security: true}}", "device: p-two,", fmt.Sprintf("device: p-two, security: {addressGuard: "+
		"{enabled: true, addresses: [%q]}},", thief.ip)).Replace(r.config(0, "web")))
	h.Up("two")
	r.everywhere(r.guests[1][0], r.announces(owner, owner.ip), "S85: an announcement passes")
	r.introduces(0)
	r.nobodyAsked(0, owner.mac, owner.ip)
	reason := map[bool]string{false: "arp-sender-not-allowed", true: "ip-source-not-allowed"}[r.v6]
	lies := [][]byte{r.announces(thief, owner.ip), r.asks(station{thief.mac, owner.ip}, false, r.at(1).ip)}
	for i, lie := range lies {
		r.guests[0][1].Send(lie)
		h.Await("S86: what is not the guest's own is dropped", func() bool {
			return h.Counter("two", reason) >= uint64(i+1)
		})
	}
	r.introduces(1)
	r.nobodyAsked(1, owner.mac, owner.ip) // who asks again has others asked
	if n := h.neighbourCount(r.t, abi.NeighbourContested); n != 0 {
		r.t.Errorf("S85: %d claims are contested", n)
	}
	r.everywhere(r.guests[0][1], r.announces(thief, thief.ip), "S86: the guest's own address passes")
	want := plan.MAC(thief.mac).String()
	for i, h := range r.hosts {
		n := h.listed("--mac", want)
		if len(n.Neighbours) != 1 || n.Neighbours[0].Address != thief.ip.String() {
			r.t.Errorf("S85, S86: host %d binds to the guarded guest %+v", i, n.Neighbours)
		}
	}
	marker := cable.Frame(cable.Broadcast(), thief.mac, 0, "after the lies")
	r.guests[0][1].Send(marker)
	for _, e := range []*cable.End{r.guests[1][0], r.kernel} {
		for _, f := range e.Until(marker) {
			r.t.Errorf("S86: %x has left the host", f)
		}
	}
}
