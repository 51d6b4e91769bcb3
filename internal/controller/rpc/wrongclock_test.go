package rpc

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
	"heddle/internal/identity"
	"heddle/internal/platform/health"
)

// A host that had a slice, as every host has after its first minute, renews a certificate that has expired by itself.
func TestS120_AHostWithASliceRenewsItsExpiredCertificate(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	m := c.up("esx1")
	if given, err := m.Given(t.Context()); err != nil || given == nil || given.Epoch == 0 {
		t.Fatalf("it has no slice of an epoch: %v %v", given, err)
	}
	m.stop()
	c.pass(100 * day)
	m.start()
	c.await("it is up", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
	if m.lost() != 0 {
		t.Error(m.said)
	}
}

// A host that a controller refuses is told why, also by one that has not told it before, and what to do.
func TestS120_ARefusedHostIsToldWhy(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	late, gone := c.up("esx1"), c.up("esx2")
	late.stop()
	gone.stop()
	must(people{c.Server}.RemoveHost(t.Context(), &controllerv1.RemoveHostRequest{Name: "esx2"}))(t)
	again := &machine{c: c, dir: gone.dir, record: must(cluster.Load(gone.dir))(t), report: gone.report}
	again.start()
	c.await("the one that was removed is told so", func() bool {
		return again.heard("refuses the certificate", "it was revoked on", "taken out of the cluster", "host leave")
	})
	again.stop()
	c.pass(181 * day)
	late.start()
	c.await("the one that comes too late is told so", func() bool {
		return late.heard("refuses the certificate", "it expired on", "by this controller's clock", "joins again")
	})
	if late.heard("left over") || late.heard("host leave") {
		t.Error(late.said)
	}
}

// While a controller's clock disagrees with those of its hosts, it makes no certificates, and says what is wrong.
func TestS121_AControllerWhoseClockHostsContradictMakesNoCertificates(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead of": 70 * day, "behind": -3 * day} {
		t.Run(name, func(t *testing.T) {
			c := newController(t)
			c.define(clusterText)
			m := c.up("esx1")
			c.up("esx3")
			c.await("their clocks are known", func() bool { return len(c.issuing.Ahead("", nil)) == 2 })
			c.set(off) // while it runs, so that no host comes anew
			c.poke("esx1")
			_, err := (&machine{c: c, dir: t.TempDir()}).ask("esx2", c.token())
			if err == nil || !strings.Contains(err.Error(), "makes no certificates: its clock is "+off.Abs().String()+
				" "+name+" those of most hosts") {
				t.Errorf("a host that joins: %v", err)
			}
			found := c.issuing.Skews(nil)
			if len(found) != 1 || !strings.Contains(found[0].Text, "it makes no certificates") {
				t.Errorf("found: %v", found)
			}
			c.set(0)
			c.await("it makes them again", func() bool {
				_, err := (&machine{c: c, dir: t.TempDir()}).ask("esx2", c.token())
				return err == nil
			})
			// It may have asked before, and been answered now.
			if left := m.record.Expires().Sub(c.now()); left < 89*day || left > 91*day || m.lost() != 0 {
				t.Errorf("it has a certificate for %v; %v", left, m.said)
			}
		})
	}
}

// A certificate that a controller made while its clock was ahead is renewed when the clock is right again: nobody is
// locked out until it begins, whatever the host's own clock had shown meanwhile.
func TestS121_ACertificateOfAWrongClockIsRenewed(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"days": 3 * day, "months": 89 * day, "years": 730 * day} {
		t.Run(name, func(t *testing.T) {
			c := newController(t)
			c.define(clusterText)
			c.set(ahead)
			m := c.joins("esx1") // nobody is there who contradicts the controller
			c.set(0)
			m.start()
			c.await("it is up", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
			if left := m.record.Expires().Sub(c.now()); left > 91*day {
				t.Errorf("its certificate counts for %v", left)
			}
		})
	}
}

// While it is not known whose clock is wrong, a certificate that begins later is not renewed: one that is made by a
// clock that is months behind would have ended when that clock is right.
func TestS121_ACertificateIsRenewedWhenTheClocksAgree(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	m := c.up("esx1")
	m.stop()
	was := m.record.Expires()
	c.set(-30 * day)
	m.start()
	c.await("it is told what is wrong", func() bool {
		return m.heard("makes no certificates", "its clock is 720h0m0s behind those of most hosts")
	})
	if !m.record.Expires().Equal(was) {
		t.Error("it was renewed by a clock that is behind")
	}
	c.set(0)
	c.await("it is back", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
}

// A host that lies about its clock, alone with the only controller, keeps no other host out and none from renewing; its
// own certificate is not renewed, and what cannot be taken back waits.
func TestS188_OneHostThatLiesKeepsNoOtherOut(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	good := c.up("esx1")
	good.stop()
	liar := c.joins("esx2")
	liar.wrong = 50 * day
	liar.start()
	c.await("its clock is known", func() bool { return len(c.issuing.Ahead("", nil)) == 1 })
	if _, err := (&machine{c: c, dir: t.TempDir()}).ask("esx3", c.token()); err != nil {
		t.Errorf("another host joins: %v", err)
	}
	renews := func(m *machine) error {
		return c.issuing.MayRenew(t.Context(), &identity.Peer{Name: identity.Name{Kind: identity.Host,
			ID: m.record.Host()}}, timestamppb.New(m.now()))
	}
	if err := renews(good); err != nil {
		t.Errorf("another host renews: %v", err)
	}
	const says = "behind those of most hosts that are connected, which is one"
	if err := renews(liar); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("the host that lies renews: %v", err)
	}
	if err := c.issuing.May(t.Context(), health.Clocks.Doubted); err == nil ||
		!strings.Contains(err.Error(), says) {
		t.Errorf("what cannot be taken back: %v", err)
	}
	c.pass(70 * day)
	good.start()
	c.await("the other host has its next certificate", func() bool {
		return good.record.Expires().Sub(c.now()) > 80*day
	})
}
