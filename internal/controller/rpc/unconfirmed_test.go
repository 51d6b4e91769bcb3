package rpc

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/identity"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
)

// After a restore what the snapshot had of hosts and tokens counts when an admin has confirmed it: neither a host that
// was taken out after the snapshot was made nor a token that was revoked then is in again by itself.
func TestS124_HostsAndTokensOfASnapshotCountWhenTheyAreConfirmed(t *testing.T) {
	f := answersPeople(t)
	f.define(clusterText)
	good, stolen := f.up("esx1"), f.up("esx2")
	left := f.made("left", controllerv1.AccessRole_ACCESS_ROLE_ADMIN, day)
	stays := f.made("stays", controllerv1.AccessRole_ACCESS_ROLE_ADMIN, day)
	unused := f.token()
	changes, found, err := Unconfirm(f.disk, f.now())
	must(f.disk.Write(t.Context(), changes))(t)
	if err != nil || !slices.Equal(found.Hosts, []string{"esx1", "esx2"}) || len(found.Tokens) != 2 ||
		found.JoinTokens != 1 || found.SignIns != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	f.await("no token for joining is left, also none that was used", func() bool {
		return len(f.disk.List(store.KindToken)) == 0
	})
	for _, m := range []*machine{good, stolen} {
		f.await("the host is told what it waits for", func() bool {
			return m.heard("restored on", "from a snapshot", "heddle-controller confirm", "back by itself")
		})
		if m.heard("host leave") {
			t.Errorf("it is told to leave: %v", m.said)
		}
	}
	for _, token := range []string{left.GetToken(), stays.GetToken()} {
		if err := f.with("Bearer " + token).lists(t); connect.CodeOf(err) != connect.CodeUnauthenticated ||
			!strings.Contains(err.Error(), "heddle-controller confirm") {
			t.Errorf("a token of the snapshot: %v", err)
		}
	}
	if err := f.admin().lists(t); err != nil {
		t.Errorf("a token made since: %v", err)
	}
	if _, err := (&machine{c: f.controller, dir: t.TempDir()}).ask("esx3", unused); err == nil {
		t.Error("a host joins by a token of the snapshot, which may have been used since")
	}
	confirm := func(q *controllerv1.ConfirmRestoredRequest) (*controllerv1.ConfirmRestoredResponse, error) {
		return people{f.Server}.ConfirmRestored(t.Context(), q)
	}
	if out := must(confirm(&controllerv1.ConfirmRestoredRequest{}))(t); len(out.GetWaiting()) != 4 ||
		len(out.GetConfirmed()) != 0 {
		t.Errorf("it lists %v", out)
	}
	if _, err := confirm(&controllerv1.ConfirmRestoredRequest{Names: []string{"esx1", "esx9"}}); connect.CodeOf(err) !=
		connect.CodeNotFound || len(f.revoked.unconfirmed()) != 4 {
		t.Errorf("a name that does not wait: %v", err)
	}
	must(confirm(&controllerv1.ConfirmRestoredRequest{Names: []string{"esx1", stays.GetId()}}))(t)
	f.await("the host is back by itself", func() bool {
		return f.state("esx1") == controllerv1.HostState_HOST_STATE_UP
	})
	if err := f.with("Bearer " + stays.GetToken()).lists(t); err != nil {
		t.Errorf("the token that was confirmed: %v", err)
	}
	must(people{f.Server}.RemoveHost(t.Context(), &controllerv1.RemoveHostRequest{Name: "esx2"}))(t)
	must(deskOf(f.Server).RevokeAPIToken(t.Context(), &controllerv1.RevokeAPITokenRequest{Id: left.GetId()}))(t)
	if out := must(confirm(&controllerv1.ConfirmRestoredRequest{All: true}))(t); len(out.GetConfirmed()) != 0 {
		t.Errorf("what was taken out is confirmed: %v", out)
	}
	name := identity.Name{Cluster: f.authority.Trust().Cluster, Kind: identity.Host, ID: stolen.record.Host()}
	f.await("the host that was taken out stays out", func() bool {
		return f.gate.Check(&identity.Peer{Name: name}) != nil && stolen.heard("taken out of the cluster")
	})
}

// A host that was installed anew after a restore takes its place: the admin who made the token for that has confirmed
// it.
func TestS124_AHostThatJoinsAnewAfterARestoreIsConfirmed(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	c.joins("esx1")
	changes, _, err := Unconfirm(c.disk, c.now())
	must(c.disk.Write(t.Context(), changes))(t)
	next := &machine{c: c, dir: t.TempDir(), report: &controllerv1.HostReport{}}
	token := must(people{c.Server}.CreateJoinToken(t.Context(), &controllerv1.CreateJoinTokenRequest{
		Replaces: "esx1"}))(t).GetToken()
	next.join("esx1", token, true)
	next.start()
	c.await("it is up", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
	if err != nil || len(c.revoked.unconfirmed()) != 0 {
		t.Errorf("%v, %v", c.revoked.unconfirmed(), err)
	}
}

// Of many that are confirmed some count when a write fails: the answer says which, and why the others wait still. One
// of which none counts is an error.
func TestS129_WhatIsConfirmedInPartIsSaid(t *testing.T) {
	const many = mostConfirmed + 50
	waiting := func(t *testing.T) *controller {
		c := newController(t)
		text := must(json.Marshal(pki.Revocation{At: c.now(), Unconfirmed: true, Name: "esx"}))(t)
		var changes []store.Change
		for i := range many {
			changes = append(changes, store.Change{Key: store.Key{Kind: revokedKind, Name: fmt.Sprintf("host/%03d", i)},
				Doc: text})
		}
		for some := range slices.Chunk(changes, mostConfirmed) {
			c.write(some...)
		}
		return c
	}
	for at, want := range map[int]int{1: 0, 2: mostConfirmed} {
		t.Run(fmt.Sprintf("write %d", at), func(t *testing.T) {
			c := waiting(t)
			p, _ := c.failing(at, before)
			out, err := p.ConfirmRestored(t.Context(), &controllerv1.ConfirmRestoredRequest{All: true})
			if (err == nil) != (want > 0) || len(out.GetConfirmed()) != want || err == nil && out.GetStopped() == "" {
				t.Errorf("%d are confirmed, stopped: %q, %v", len(out.GetConfirmed()), out.GetStopped(), err)
			}
			if err == nil && len(out.GetWaiting()) != many-want {
				t.Errorf("%d wait", len(out.GetWaiting()))
			}
			if left := len(c.revoked.unconfirmed()); left != many-want {
				t.Errorf("%d wait in the store, want %d", left, many-want)
			}
		})
	}
}
