package adopttest

import (
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/observe/undone"
	"heddle/internal/test/testkit"
)

// The path through the device is cut when it should be used again: the gateway is not reachable there.
func TestS81_AReleaseIsUndoneWhenTheGatewayIsSilent(t *testing.T) {
	testkit.Long(t, "waits for trials; TestS81_AnAdoptionIsTakenBackWhenTheGatewayIsSilent has one")
	t.Parallel()
	e := newEstate(t)
	before := e.settled()
	s := e.stream("203.0.113.9")
	if err := e.Heddle("host-port", "adopt", "eth0", "--gateway-within", "20s"); err != nil {
		t.Fatal(err)
	}
	if err := e.Heddle("host-port", "confirm"); err != nil {
		t.Fatal(err)
	}
	e.outside("ip -6 address del 2001:db8::1/64 dev gw0")
	err := e.Heddle("host-port", "release", "vmk0")
	if err == nil || !strings.Contains(err.Error(), "gateway 2001:db8::1 did not answer by device eth0 within 20s") {
		t.Errorf("%v", err)
	}
	if a := e.adoption(); a.State != api.AdoptionConfirmed || a.ReasonCode != undone.ReleaseUnanswered ||
		!strings.Contains(a.Reason, "did not answer") {
		t.Errorf("%+v", a)
	}
	if n, text := e.happened(event.Adopted); n != 2 || !strings.Contains(text, "again") {
		t.Errorf("%d events, the last: %s", n, text)
	}
	e.goesOn(s, "at the host port again")
	e.outside("ip -6 address add 2001:db8::1/64 dev gw0 nodad")
	e.reaches()
	if err := e.Heddle("host-port", "release", "vmk0"); err != nil {
		t.Fatal(err)
	}
	e.reaches()
	e.goesOn(s, "after the release")
	e.end(s)
	e.restored(before, "released")
}

// An agent is killed while it asks the gateway; the next agent continues asking.
func TestS81_AReleaseIsWatchedByTheNextAgent(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	before := e.settled()
	for _, args := range []string{"adopt eth0 --gateway-within 1m", "confirm"} {
		if err := e.Heddle(append([]string{"host-port"}, strings.Fields(args)...)...); err != nil {
			t.Fatal(err)
		}
	}
	e.outside("ip address del 192.0.2.1/24 dev gw0")
	a, err := e.ReleaseAdoption(t.Context(), api.Release{Name: "vmk0"})
	if err != nil || a.State != api.AdoptionReleasing {
		t.Fatalf("%+v, %v", a, err)
	}
	e.End(syscall.SIGKILL)
	e.outside("ip address add 192.0.2.1/24 dev gw0")
	e.Start("")
	e.Await("the release is over", func() bool { return e.adoption().State == api.AdoptionReverted })
	e.reaches()
	e.restored(before, "released")
}

func TestS81_DownMovesTheHostsAddressesBack(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	before := e.settled()
	s := e.stream("203.0.113.9")
	if err := e.Heddle("host-port", "adopt", "eth0"); err != nil {
		t.Fatal(err)
	}
	if err := e.Heddle("host-port", "confirm"); err != nil {
		t.Fatal(err)
	}
	if err := e.Heddle("down"); err != nil {
		t.Fatal(err)
	}
	e.reaches()
	e.goesOn(s, "after down")
	e.end(s)
	e.Start("")
	e.up()
	e.restored(before, "down, and started again")
}

// The card that gave its addresses to a host port was renamed meanwhile: it is found by its index and MAC.
func TestS81_DownFindsACardThatWasRenamed(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	if err := e.Heddle("host-port", "adopt", "eth0"); err != nil {
		t.Fatal(err)
	}
	if err := e.Heddle("host-port", "confirm"); err != nil {
		t.Fatal(err)
	}
	e.End(syscall.SIGKILL)
	e.run("ip link set eth0 name wan0")
	if err := e.Heddle("down"); err != nil {
		t.Fatal(err)
	}
	if got := e.run("ip -o address show dev wan0"); !strings.Contains(got, "192.0.2.10/24") ||
		!strings.Contains(got, "2001:db8::10/64") {
		t.Errorf("its addresses are not back:\n%s", got)
	}
	if got := e.run("ip -o link"); strings.Contains(got, "vmk0") || strings.Contains(got, "PROMISC") {
		t.Errorf("left:\n%s", got)
	}
	e.reaches()
	e.run("ip link set wan0 name eth0")
	e.Start("")
	e.up()
}
