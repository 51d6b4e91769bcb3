package agent

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"heddle/internal/agent/held"
	"heddle/internal/agent/state"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
)

// A switch without uplinks has no path out of the host: changes of its host ports are not put on trial (S81).
const (
	inside = "switches:\n  - {name: lab, portGroups: [{name: web}]}\nports:\n  - {name: idle, switch: lab, " +
		"portGroup: web, device: pz}\n"
	withVMK = inside + "  - {name: vmk0, switch: lab, portGroup: web, role: host, addresses: [192.0.2.1/24]}\n"
)

// An agent that was killed between making a pair and recording its indexes, or before it removed the pair, leaves a
// pair that no port has.
func TestStrayPairsOfAKilledAgentAreRemoved(t *testing.T) {
	for _, indexes := range []bool{false, true} {
		r := newRig(t, withVMK)
		mac := plan.MAC{2, 0, 0, 0, 0, 0x70}
		if err := r.dev.CreatePair(hostdev.Pair{Host: "old", Switch: "sw-old", MAC: mac,
			Alias: "heddle/test/lab/old"}); err != nil {
			t.Fatal(err)
		}
		end := r.dev.byName["sw-old"]
		end.Peer.Seen, end.Peer.MAC = true, mac
		rec := r.state.PutPair(state.Pair{ID: id("old"), Host: "old", End: "sw-old", MAC: mac})
		if indexes {
			rec.Made(*end)
		}
		if err := r.store.Save(r.state); err != nil {
			t.Fatal(err)
		}
		if err := r.restart(withVMK); err != nil {
			t.Fatal(err)
		}
		if r.dev.byName["sw-old"] != nil || r.dev.byName["old"] != nil || r.dev.byName["sw-vmk0"] == nil {
			t.Errorf("left: %v", r.dev.byName)
		}
		if got := r.saved().Pairs; len(got) != 1 || got[0].Host != "vmk0" {
			t.Errorf("remembered: %+v", got)
		}
	}
}

// Anybody can set an alias, also on a device that cannot be removed. Such devices are left alone, at the start and at
// the end.
func TestDevicesThatOnlyHaveOurAliasAreLeftAlone(t *testing.T) {
	r := newRig(t, withVMK)
	nic := r.dev.nic("eno9", 1500)
	nic.Alias = "heddle/test/lab/evil"
	r.dev.fail["delete eno9"] = errors.New("operation not supported")
	r.dev.veth("sw-old", "02:00:00:00:00:70").Alias = "heddle/test/lab/old"
	vmk := r.dev.veth("cuckoo", "02:00:00:00:00:71")
	vmk.Alias = "heddle/test/lab/vmk0"
	r.dev.changes = nil
	if err := r.restart(withVMK); err != nil {
		t.Fatal(err)
	}
	left, err := held.RemovePairs(r.dev, &r.state.Devices, "test", true)
	if err != nil || len(left) != 3 || !strings.Contains(strings.Join(left, "\n"),
		"device eno9 has the alias heddle/test/lab/evil") {
		t.Errorf("told: %q, %v", left, err)
	}
	for _, name := range []string{"eno9", "sw-old", "cuckoo"} {
		if r.dev.byName[name] == nil || slices.Contains(r.dev.changes, "delete "+name) {
			t.Errorf("%s was touched: %v", name, r.dev.changes)
		}
	}
	if r.dev.byName["sw-vmk0"] != nil {
		t.Error("our own pair stays")
	}
}

// A device with a host port's name is not taken for ours because of its alias, and is not removed.
func TestADeviceWithTheNameAndAliasOfAHostPortIsNotOurs(t *testing.T) {
	r := newRig(t, "")
	d := r.dev.nic("sw-vmk0", 1500)
	d.Alias = "heddle/test/lab/vmk0"
	if err := r.apply(withVMK); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.Active().Problems[id("vmk0")].Text(), "did not make") || r.state.Of(id("vmk0")) != nil ||
		len(r.dev.changes) > 0 {
		t.Errorf("%q, %v", r.Active().Problems[id("vmk0")], r.dev.changes)
	}
}

// If a port is renamed, its pair stays, with the addresses that others put on it.
func TestAHostPortThatIsRenamedKeepsItsInterface(t *testing.T) {
	r := newRig(t, withVMK)
	index := r.dev.byName["vmk0"].Index
	foreign := netip.MustParsePrefix("198.51.100.7/24")
	r.dev.addresses[index] = append(r.dev.addresses[index], foreign)
	if err := r.apply(strings.Replace(withVMK, "name: vmk0", "name: mgmt, device: vmk0", 1)); err != nil {
		t.Fatal(err)
	}
	d := r.dev.byName["vmk0"]
	if d == nil || d.Index != index || d.Alias != "heddle/test/lab/mgmt" || !slices.Contains(r.dev.addresses[index],
		foreign) {
		t.Errorf("%+v, %v after %v", d, r.dev.addresses, r.dev.changes)
	}
}

// Addresses that somebody else put on a host port stay through every apply and restart; addresses that the port asked
// for are removed when it no longer asks for them.
func TestAddressesOfOthersStayOnAHostPort(t *testing.T) {
	r := newRig(t, withVMK)
	index := r.dev.byName["vmk0"].Index
	a := func(s string) netip.Prefix { return netip.MustParsePrefix(s) }
	r.dev.addresses[index] = append(r.dev.addresses[index], a("198.51.100.7/24"), a("192.0.2.3/24"))
	expect := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, p := range r.dev.addresses[index] {
			got = append(got, p.String())
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	apply := func(addresses string) {
		t.Helper()
		if err := r.apply(strings.Replace(withVMK, "192.0.2.1/24", addresses, 1)); err != nil {
			t.Fatal(err)
		}
	}
	apply("192.0.2.1/24, 192.0.2.2/24")
	expect("one more", "198.51.100.7/24", "192.0.2.1/24", "192.0.2.2/24", "192.0.2.3/24")
	apply("192.0.2.2/24, 192.0.2.3/24") // the last one exists already, from somebody else
	expect("one less", "198.51.100.7/24", "192.0.2.2/24", "192.0.2.3/24")
	if err := r.restart(""); err != nil {
		t.Fatal(err)
	}
	apply("192.0.2.4/24")
	expect("after a restart", "198.51.100.7/24", "192.0.2.3/24", "192.0.2.4/24")
	apply("")
	expect("none", "198.51.100.7/24", "192.0.2.3/24")
}

// An address that the port asks for, and that an agent version without such records put on the interface, counts as the
// agent's.
func TestAddressesThatAnEarlierVersionPut(t *testing.T) {
	r := newRig(t, withVMK)
	index := r.dev.byName["vmk0"].Index
	r.dev.addresses[index] = append(r.dev.addresses[index], netip.MustParsePrefix("198.51.100.7/24"))
	r.state.Pairs = nil
	if err := r.store.Save(r.state); err != nil {
		t.Fatal(err)
	}
	if err := r.restart(withVMK); err != nil {
		t.Fatal(err)
	}
	if err := r.apply(strings.Replace(withVMK, "192.0.2.1/24", "", 1)); err != nil {
		t.Fatal(err)
	}
	if got := r.dev.addresses[index]; len(got) != 1 || got[0].String() != "198.51.100.7/24" {
		t.Errorf("left: %v", got)
	}
}

// Addresses are recorded before they are put on an interface: after a crash in between they still count as the agent's.
func TestAddressesAreWrittenDownFirst(t *testing.T) {
	r := newRig(t, inside)
	r.dev.before = func(what string) {
		if what == "address vmk0 + 192.0.2.1/24" && len(r.saved().Pairs[0].Put) != 1 {
			t.Errorf("before %q: %+v", what, r.saved().Pairs)
		}
		if what == "create vmk0 sw-vmk0" && (len(r.saved().Pairs) != 1 || r.saved().Pairs[0].Host != "vmk0") {
			t.Errorf("before %q: %+v", what, r.saved().Pairs)
		}
	}
	if err := r.apply(withVMK); err != nil {
		t.Fatal(err)
	}
	if len(r.dev.addresses[r.dev.byName["vmk0"].Index]) != 1 {
		t.Error("no address was put: this test is void")
	}
}

// A host port's interface gets the route of the plan once it is up, again when it is another device or was down, and
// loses it with the configuration. What goes wrong is the port's problem, and is tried again.
func TestTheRouteOfAHostPortFollowsThePlan(t *testing.T) {
	const first = "routes of vmk0 [default via 192.0.2.7 metric 0 table 0]"
	routed := strings.Replace(withVMK, "addresses:", "gateway: 192.0.2.7, addresses:", 1)
	if routed == withVMK {
		t.Fatal("the configuration has no addresses")
	}
	r := newRig(t, routed)
	index := r.dev.byName["vmk0"].Index
	if i, up := slices.Index(r.dev.changes, first), slices.Index(r.dev.changes, "up vmk0"); i < 0 || up > i {
		t.Fatalf("%v", r.dev.changes)
	}
	const second = "routes of vmk0 [default via 192.0.2.8 metric 5 table 0]"
	r.dev.fail[second] = errors.New("no room")
	changed := strings.Replace(routed, "gateway: 192.0.2.7", "gateway: 192.0.2.8, metric: 5", 1)
	if err := r.apply(changed); err != nil {
		t.Fatal(err)
	}
	if got := r.Active().Problems[id("vmk0")].Text(); !strings.Contains(got, "no room") {
		t.Errorf("the port's problem is %q", got)
	}
	delete(r.dev.fail, second)
	delete(r.dev.routes, index)
	if err := r.restart(changed); err != nil {
		t.Fatal(err)
	}
	if got := r.dev.routes[index]; !strings.Contains(second, got) || got == "" {
		t.Errorf("after a restart: %q, %v", got, r.dev.changes)
	}
	if err := r.apply(withVMK); err != nil {
		t.Fatal(err)
	}
	if got := r.dev.routes[index]; got != "[]" {
		t.Errorf("without a gateway: %q", got)
	}
}
