package rpc

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/identity"
	"heddle/internal/platform/access/tokens"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
)

// older has a controller of the version before in the cluster: it does not say what it knows.
func (c *controller) older() peers.Controller {
	c.t.Helper()
	old := peers.Controller{ID: store.NewID(), Name: "old", Address: "192.0.2.7:7411", Version: "0.1"}
	c.write(store.Change{Key: store.Key{Kind: peers.ControllerKind, Name: old.ID}, Doc: must(json.Marshal(old))(c.t),
		IfVersion: store.New})
	return old
}

// asOlder is what a controller of the version before keeps of a document that it writes anew: entries of maps and lists
// lose the fields that it does not know.
func asOlder(t *testing.T, doc []byte, drop ...string) []byte {
	t.Helper()
	var all any
	if err := json.Unmarshal(doc, &all); err != nil {
		t.Fatal(err)
	}
	var strip func(v any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range drop {
				delete(v, name)
			}
			for _, below := range v {
				strip(below)
			}
		case []any:
			for _, below := range v {
				strip(below)
			}
		}
	}
	strip(all)
	return must(json.Marshal(all))(t)
}

// listed is the list as a controller of the version before reads it.
func (c *controller) listed() *pki.Revocations {
	c.t.Helper()
	o, _ := c.Store.Get(revocationsKey())
	return must(pki.DecodeRevocations(o.Doc))(c.t)
}

// While a controller of the version before is in the cluster it learns from the list, which is all that it reads, whom
// this one refuses; and what it drops from a host's record when it writes that anew is refused all the same.
func TestS144_AControllerOfTheVersionBeforeKnowsWhatIsRevoked(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	gone, replaced := c.up("esx1"), c.up("esx2")
	name := identity.Name{Cluster: c.authority.Trust().Cluster, Kind: identity.Host, ID: gone.record.Host()}
	serial := c.serials("esx2")[0]
	token := must(people{c.Server}.CreateJoinToken(t.Context(), &controllerv1.CreateJoinTokenRequest{
		Replaces: "esx2"}))(t).GetToken()
	next := &machine{c: c, dir: t.TempDir(), report: &controllerv1.HostReport{}}
	next.join("esx2", token, true)
	if _, there := c.Store.Get(revocationsKey()); there {
		t.Error("there is a list, which nobody reads")
	}
	c.older()
	must(people{c.Server}.RemoveHost(t.Context(), &controllerv1.RemoveHostRequest{Name: "esx1"}))(t)
	if e, has := c.listed().Names[name.String()]; !has || !strings.Contains(e.Why, "esx1") {
		t.Errorf("the host that is taken out is not in the list: %+v", c.listed())
	}
	if err := oldListOf(c.Server).complete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, has := c.listed().Serials[serial]; !has {
		t.Errorf("the certificate of the host whose place was taken is not in the list: %+v", c.listed())
	}
	// The older one renews the certificate of a host, and has a machine take the place of another.
	o, _ := c.Store.Get(store.Key{Kind: store.KindHost, Name: "esx2"})
	c.write(store.Change{Key: o.Key, Doc: asOlder(t, o.Doc, "withdrawn", "made", "madeOf"), IfVersion: o.Version})
	list, _ := c.Store.Get(revocationsKey())
	c.write(store.Change{Key: list.Key, Doc: asOlder(t, list.Doc, "unconfirmed", "name"), IfVersion: list.Version})
	started := must(New(c.Options))(t)
	for what, p := range map[string]*identity.Peer{
		"the host that was taken out": {Name: name},
		"the certificate from before": {Serial: serial, Name: identity.Name{Cluster: name.Cluster,
			Kind: identity.Host, ID: replaced.record.Host()}},
	} {
		if err := started.gate.Check(p); err == nil {
			t.Errorf("%s counts again", what)
		}
	}
}

// What was not confirmed is refused by a controller of the version before as well, and counts there when it is
// confirmed.
func TestS144_WhatIsConfirmedCountsAtAControllerOfTheVersionBefore(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	m := c.up("esx1")
	name := identity.Name{Cluster: c.authority.Trust().Cluster, Kind: identity.Host, ID: m.record.Host()}
	changes, _, err := Unconfirm(c.disk, c.now())
	if err != nil {
		t.Fatal(err)
	}
	c.write(changes...)
	c.older()
	if err := oldListOf(c.Server).complete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, has := c.listed().Names[name.String()]; !has {
		t.Errorf("the host that waits is not in the list: %+v", c.listed())
	}
	list, _ := c.Store.Get(revocationsKey())
	c.write(store.Change{Key: list.Key, Doc: asOlder(t, list.Doc, "unconfirmed", "name"), IfVersion: list.Version})
	must(people{c.Server}.ConfirmRestored(t.Context(), &controllerv1.ConfirmRestoredRequest{All: true}))(t)
	if _, has := c.listed().Names[name.String()]; has {
		t.Errorf("the host that was confirmed is in the list: %+v", c.listed())
	}
	c.await("the host is back", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
}

// A token that was not confirmed is refused by a controller of the version before as well, which looks at nothing but
// the token's own record, and writes it anew as it reads it; it counts there when it is confirmed.
func TestS144_ATokenCountsAtAControllerOfTheVersionBeforeWhenItIsConfirmed(t *testing.T) {
	f := answersPeople(t)
	made := f.made("ann", controllerv1.AccessRole_ACCESS_ROLE_ADMIN, day)
	token := must(identity.ParseAPIToken(made.GetToken()))(t)
	key := store.Key{Kind: tokens.Kind, Name: made.GetId()}
	// older is a record as the version before reads it.
	older := func() *pki.APIRecord {
		o, _ := f.Store.Get(key)
		return must(pki.DecodeAPIRecord(asOlder(t, o.Doc, "waiting")))(t)
	}
	if err := older().Check(token, f.now()); err != nil {
		t.Errorf("before the restore: %v", err)
	}
	changes, _, err := Unconfirm(f.disk, f.now())
	if err != nil {
		t.Fatal(err)
	}
	f.write(changes...)
	if err := older().Check(token, f.now()); err == nil {
		t.Error("at a controller of the version before it counts without being confirmed")
	}
	if err := f.with("Bearer " + made.GetToken()).lists(t); connect.CodeOf(err) != connect.CodeUnauthenticated ||
		!strings.Contains(err.Error(), "heddle-controller confirm") {
		t.Errorf("here: %v", err)
	}
	again, _, err := Unconfirm(f.disk, f.now()) // a snapshot of this state is restored
	if err != nil {
		t.Fatal(err)
	}
	f.write(again...)
	must(people{f.Server}.ConfirmRestored(t.Context(), &controllerv1.ConfirmRestoredRequest{All: true}))(t)
	if err := older().Check(token, f.now()); err != nil {
		t.Errorf("confirmed, at a controller of the version before: %v", err)
	}
	if err := f.with("Bearer " + made.GetToken()).lists(t); err != nil {
		t.Errorf("confirmed, here: %v", err)
	}
}

// A token counts at all controllers when it is confirmed at one of them, whichever that is: one of the version before
// removes the mark and does not know what the token's record says. By itself that makes no other token count.
func TestS144_ATokenThatIsConfirmedAtAControllerOfTheVersionBeforeCountsEverywhere(t *testing.T) {
	f := answersPeople(t)
	first := f.made("ann", controllerv1.AccessRole_ACCESS_ROLE_ADMIN, day)
	second := f.made("bob", controllerv1.AccessRole_ACCESS_ROLE_ADMIN, day)
	third := f.made("cid", controllerv1.AccessRole_ACCESS_ROLE_ADMIN, day)
	waits := f.made("dan", controllerv1.AccessRole_ACCESS_ROLE_ADMIN, day)
	// counts says whether it does at a controller of the version before.
	counts := func(made *controllerv1.CreateAPITokenResponse) bool {
		o, _ := f.Store.Get(store.Key{Kind: tokens.Kind, Name: made.GetId()})
		if f.revoked.unconfirmedToken(identity.TokenID(made.GetId())) {
			return false
		}
		older := must(pki.DecodeAPIRecord(asOlder(t, o.Doc, "waiting")))(t)
		return older.Check(must(identity.ParseAPIToken(made.GetToken()))(t), f.now()) == nil
	}
	changes, _, err := Unconfirm(f.disk, f.now())
	if err != nil {
		t.Fatal(err)
	}
	f.write(changes...)
	f.older()
	// confirmedThere is what a controller of the version before does.
	confirmedThere := func(made *controllerv1.CreateAPITokenResponse) {
		if mark := f.revoked.unmarking(tokenAs(identity.TokenID(made.GetId()))); len(mark) > 0 {
			f.write(mark...)
		}
	}
	confirmedHere := func(made *controllerv1.CreateAPITokenResponse) {
		out := must(people{f.Server}.ConfirmRestored(t.Context(), &controllerv1.ConfirmRestoredRequest{
			Names: []string{made.GetId()}}))(t)
		if len(out.GetConfirmed()) != 1 || len(f.revoked.unmarking(tokenAs(identity.TokenID(made.GetId())))) != 0 {
			t.Errorf("confirmed: %v", out)
		}
	}
	confirmedThere(first)
	if counts(first) {
		t.Fatal("the version before makes it count by itself: this test shows nothing")
	}
	confirmedHere(first) // there and then here
	confirmedHere(second)
	confirmedThere(second) // here and then there: nothing is left to do
	confirmedThere(third)  // there alone
	if err := oldListOf(f.Server).finishConfirming(t.Context()); err != nil {
		t.Fatal(err)
	}
	for who, made := range map[string]*controllerv1.CreateAPITokenResponse{"there and here": first,
		"here and there": second, "there alone": third} {
		if err := f.with("Bearer " + made.GetToken()).lists(t); err != nil {
			t.Errorf("confirmed %s, here: %v", who, err)
		}
		if !counts(made) {
			t.Errorf("confirmed %s, it does not count at a controller of the version before", who)
		}
	}
	if counts(waits) || f.with("Bearer "+waits.GetToken()).lists(t) == nil || len(f.revoked.unconfirmed()) != 1 {
		t.Error("a token that nobody has confirmed counts")
	}
	if left := f.revoked.halfConfirmed(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// A list that is full refuses the next host that is taken out, and says what to do; single certificates leave room for
// those; without a controller of the version before nobody needs it.
func TestS144_AFullListSaysWhatToDo(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	for _, name := range []string{"esx1", "esx2"} {
		if err := c.joinAt(c.Server, name); err != nil {
			t.Fatal(err)
		}
	}
	full := &pki.Revocations{Format: 1, Names: map[string]pki.Revocation{}}
	for i := range 3500 {
		full.Names[fmt.Sprintf("heddle://abcdefghijklmnop/host/%026d", i)] = pki.Revocation{At: c.now(), By: "somebody",
			Why: "it is one of so many that there is no room for another one in the list"}
	}
	c.write(store.Change{Key: revocationsKey(), Doc: must(full.Encode())(t), IfVersion: store.New})
	old := c.older()
	remove := func(name string) error {
		_, err := people{c.Server}.RemoveHost(t.Context(), &controllerv1.RemoveHostRequest{Name: name})
		return err
	}
	if err := remove("esx1"); connect.CodeOf(err) != connect.CodeResourceExhausted ||
		!strings.Contains(err.Error(), "upgrade old at 192.0.2.7:7411") {
		t.Errorf("removed: %v", err)
	}
	if _, there := c.Store.Get(store.Key{Kind: store.KindHost, Name: "esx1"}); !there {
		t.Error("what was refused has removed the host")
	}
	o, _ := c.Store.Get(store.Key{Kind: peers.ControllerKind, Name: old.ID})
	old.Knows = peers.KnowsRevoked
	c.write(store.Change{Key: o.Key, Doc: must(json.Marshal(old))(t), IfVersion: o.Version})
	if err := remove("esx1"); err != nil {
		t.Errorf("with all controllers upgraded: %v", err)
	}
}

// A controller of the version before gives a host another certificate and leaves beside it when the one before was
// made: that does not count for the new one.
func TestS144_WhenAnotherCertificateWasMadeSaysNothing(t *testing.T) {
	made := time.Unix(1_800_000_000, 0)
	d := hostDoc{Serial: "first", Expires: made.Add(pki.CertificateLife), Made: made.Add(time.Minute), MadeOf: "first"}
	if got := d.certificates()[0]; !got.made().Equal(made.Add(time.Minute)) {
		t.Errorf("its own: %s", got.made())
	}
	later := made.Add(60 * day)
	d.Serial, d.Expires = "second", later.Add(pki.CertificateLife)
	if got := d.certificates()[0]; !got.made().Equal(later) {
		t.Errorf("of the one before: %s, want %s", got.made(), later)
	}
}
