package adopttest

import (
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/observe/undone"
)

func TestS81_AnAdoptionThatIsConfirmedStaysAndIsReleased(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	before := e.settled()
	four, six := e.stream("203.0.113.9"), e.stream("2001:db8::1")
	e.goesOn(four, "before")
	e.goesOn(six, "before")
	if err := e.Heddle("host-port", "adopt", "eth0"); err != nil {
		t.Fatal(err)
	}
	e.reaches()
	e.goesOn(four, "after the move")
	e.goesOn(six, "after the move")
	if out := e.run("ip -o address show dev eth0 scope global"); out != "" {
		t.Errorf("left on eth0: %s", out)
	}
	if err := e.Heddle("host-port", "confirm"); err != nil {
		t.Fatal(err)
	}
	if a := e.adoption(); a.State != api.AdoptionConfirmed || !strings.Contains(a.Declaration, "vmk0") {
		t.Errorf("%+v", a)
	}
	e.End(syscall.SIGKILL)
	e.Start("")
	e.Configure(adoptConfig + "ports:\n" + strings.TrimPrefix(e.adoption().Declaration, "ports:\n"))
	e.goesOn(four, "after it was declared")
	if _, err := e.ReleaseAdoption(t.Context(), api.Release{Name: "vmk0"}); err == nil {
		t.Error("released while the file declares it")
	}
	e.Configure(adoptConfig)
	e.reaches()
	if err := e.Disconnect(t.Context(), api.Disconnect{Port: "vmk0"}); err == nil {
		t.Error("disconnected the host's own addresses")
	}
	for _, args := range []string{"port move vmk0 --port-group web", "port block vmk0"} {
		if err := e.Heddle(strings.Fields(args)...); err == nil ||
			!strings.Contains(err.Error(), "host-port release vmk0") {
			t.Errorf("%s: %v", args, err)
		}
	}
	e.reaches()
	if err := e.Heddle("host-port", "release", "vmk0"); err != nil {
		t.Fatal(err)
	}
	e.goesOn(four, "after the release")
	e.goesOn(six, "after the release")
	e.end(four)
	e.end(six)
	e.restored(before, "released")
}

func TestS81_AnAdoptionIsTakenBackWhenTheGatewayIsSilent(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	before := e.settled()
	s := e.stream("203.0.113.9")
	err := e.Heddle("host-port", "adopt", "eth0", "--gateway", "192.0.2.77", "--gateway-within", "2s")
	if err == nil || !strings.Contains(err.Error(), "192.0.2.77 did not answer") {
		t.Errorf("%v", err)
	}
	e.restored(before, "silent gateway")
	if n, text := e.happened(event.Reverted); n != 1 || !strings.Contains(text, "did not answer") {
		t.Errorf("%d events, the last: %s", n, text)
	}
	e.goesOn(s, "after it was taken back")
	e.end(s)
}

func TestS81_AnAdoptionIsTakenBackWhenNobodyConfirms(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	before := e.settled()
	s := e.stream("203.0.113.9")
	if err := e.Heddle("host-port", "adopt", "eth0", "--confirm-within", "3s", "--name", "mgmt0"); err != nil {
		t.Fatal(err)
	}
	e.Await("it is taken back", func() bool { return e.adoption().State == api.AdoptionReverted })
	e.restored(before, "not confirmed")
	if a := e.adoption(); a.ReasonCode != undone.NotConfirmed || !strings.Contains(a.Reason, "not confirmed") {
		t.Errorf("%+v", a)
	}
	e.goesOn(s, "after it was taken back")
	e.end(s)
	if err := e.Heddle("host-port", "confirm", "mgmt0"); err == nil {
		t.Error("confirmed what was taken back")
	}
}

func TestS81_WhatStandsAgainstAnAdoptionIsSaidAndNothingIsTouched(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.run("ip link add bare type veth peer name bare1")
	before := e.settled()
	for _, c := range []struct{ args, want string }{
		{"nope", "no device"}, {"bare", "no uplink"}, {"eth0 --port-group nope", "nope"},
		{"eth0 --port-group web", "untagged"},
		{"eth0 --name bare1", "exists already"}, {"eth0 --name much-too-long-a-name", "name for a network interface"},
		{"eth0 --gateway me", "no IP address"}, {"eth0 --confirm-within 0s", "time to confirm"},
	} {
		if err := e.Heddle(append([]string{"host-port", "adopt"}, strings.Fields(c.args)...)...); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("adopt %s: %v", c.args, err)
		}
	}
	if err := e.Heddle("host-port", "adopt", "eth0", "--dry-run"); err != nil {
		t.Error(err)
	}
	e.restored(before, "refused")
	if n, _ := e.happened(event.Adopted); n != 0 {
		t.Errorf("%d adoptions", n)
	}
}
