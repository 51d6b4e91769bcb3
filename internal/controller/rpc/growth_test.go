package rpc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/cmd/heddle-controller/features"
	"heddle/internal/identity"
	"heddle/internal/platform/access/tokens"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
)

// grows says of each kind of stored objects by whose wish there are more of them, or larger ones, and what bounds that.
// A kind that a host or a guest makes grow has a bound that needs no admin, and room that is nobody else's.
func grows() map[string]string {
	const admins = "by calls that are an admin's, or in the definition of who may change it"
	all := map[string]string{
		"host": "one for each join token; 17 certificates in each, 4 an hour (certrecord.go)",
		"revoked": "one for each host or controller that was taken out, of a few hundred bytes, until no " +
			"certificate of a host can count any more",
		"revocations": "the same once more, while a controller of an earlier version is there; of 512 KiB at most",
		"token":       "by an admin; those that expired a month ago go when another one is made",
		"apiToken":    "by an admin; 16 of each person who signs in, 20,000 sign-ins in all",
		"idToken":     "20,000 of people who signed in, until the provider's token ends",
		"hostPort":    admins, "switch": admins, "portGroup": admins,
		"template": admins, "hostEntry": admins, "definition": admins, "definitionChange": "one at a time",
		"hostAddresses": "one for each host, of as many addresses as it has host ports", "addressBook": "one",
		"authority": "one", "import": "one", "rollout": admins, "rolloutPart": admins, "rolloutUsual": admins,
		"controller": "one for each controller's join token", "accessGrant": admins, "accessGroup": admins,
		"account": "not written", "audit": "not written: the log is files, each of a bounded size",
		"past": "the history, of which the bounds are --history's",
	}
	for _, c := range features.List() {
		for _, k := range c.Kinds {
			all[string(k.Name)] = k.Bound
		}
	}
	return all
}

// Every kind of objects that controllers write is in the table above: a new one begins with the question who makes it
// grow.
func TestS122_EachKindOfObjectsHasABound(t *testing.T) {
	kinds := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^\s*(?:const )?\w*Kind\w*\s+(?:store\.|slice\.)?Kind\s+= "(\w+)"|` +
		`^\s*(?:Template|Host) slice\.Kind = "(\w+)"`)
	read := func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			kinds[m[1]+m[2]] = true
		}
		return err
	}
	err := errors.Join(filepath.WalkDir("..", read), filepath.WalkDir("../../platform", read),
		filepath.WalkDir("../../feature", read))
	if err != nil || len(kinds) < 20 {
		t.Fatal(len(kinds), err)
	}
	table := grows()
	for kind := range kinds {
		if table[kind] == "" {
			t.Errorf("nothing says who makes objects of the kind %s grow, and what bounds it", kind)
		}
	}
	for kind := range table {
		if !kinds[kind] {
			t.Errorf("there are no objects of the kind %s", kind)
		}
	}
}

// hostile is somebody who has a host's key, and does with it what it is good for.
type hostile struct {
	m    *machine
	cert tls.Certificate
}

// renew asks for another certificate, and goes on with it.
func (h *hostile) renew() error {
	t := h.m.c.t
	t.Helper()
	key := must(identity.NewKey())(t)
	conf := must(h.m.record.TLS())(t)
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &h.cert, nil }
	out, err := h.m.c.call(conf).RenewHost(t.Context(), &controllerv1.RenewHostRequest{Csr: must(key.Request())(t)})
	if err == nil {
		h.cert = tls.Certificate{Certificate: out.GetIdentity().GetCertificates(), PrivateKey: key.PrivateKey}
	}
	return err
}

// newHostile is one with the key of a host that has joined.
func newHostile(c *controller, name string) *hostile {
	c.t.Helper()
	h := &hostile{m: c.joins(name)}
	conf := must(h.m.record.TLS())(c.t)
	h.cert = *must(conf.GetClientCertificate(&tls.CertificateRequestInfo{}))(c.t)
	return h
}

// sizes are how many bytes there are of each kind of objects.
func (c *controller) sizes() map[string]int {
	sum := map[string]int{}
	for kind := range grows() {
		for _, o := range c.disk.List(store.Kind(kind)) {
			sum[kind] += len(o.Doc)
		}
	}
	return sum
}

// A stolen host renews its certificate as often as it can: nothing grows but its own record, up to a bound, and it is
// revoked as quickly as any other.
func TestS122_AHostThatRenewsAllTheTimeFillsNothing(t *testing.T) {
	c := newController(t)
	h := newHostile(c, "esx1")
	first := h.cert
	was, given := c.sizes(), 0
	for range 10 * mostRenewals {
		err := h.renew()
		if err == nil {
			given++
			continue
		}
		if connect.CodeOf(err) != connect.CodeResourceExhausted || !strings.Contains(err.Error(), "within an hour") {
			t.Fatal(err)
		}
	}
	if given != mostRenewals-1 { // and the one that it joined with
		t.Errorf("%d certificates within an hour", given)
	}
	for range 2 * mostFormer {
		c.pass(renewalsIn)
		if err := h.renew(); err != nil {
			t.Fatal("an hour later:", err)
		}
	}
	for kind, n := range c.sizes() {
		if kind == "host" && n > 8<<10 || kind != "host" && n != was[kind] {
			t.Errorf("there are %d bytes of the kind %s, and %d were there before", n, kind, was[kind])
		}
	}
	newest := h.cert
	h.cert = first
	err := h.renew()
	for range 100 { // the connection may be closed before the client has read why
		if err == nil || !strings.Contains(err.Error(), "could not be established") {
			break
		}
		err = h.renew()
	}
	if !identity.RefusedByPeer(err) {
		t.Errorf("its first certificate: %v", err)
	}
	c.await("the log says why", func() bool { return c.log.count("it was renewed since") > 0 })
	h.cert = newest
	must(people{c.Server}.RemoveHost(t.Context(), &controllerv1.RemoveHostRequest{Name: "esx1"}))(t)
	if err := h.renew(); err == nil {
		t.Error("it renews after it was removed")
	}
}

// What an earlier version has revoked in one list counts, and leaves room for what is revoked now, however long it is.
func TestS122_AHostIsRevokedWhateverWasRevokedBefore(t *testing.T) {
	c := newController(t)
	h, old := newHostile(c, "esx1"), newHostile(c, "esx2")
	leaf := must(x509.ParseCertificate(old.cert.Certificate[0]))(t)
	var list strings.Builder
	fmt.Fprintf(&list, `{"format":1,"names":{},"serials":{"%s":{"at":"2026-11-01T00:00:00Z","by":"the controller"}`,
		identity.SerialOf(leaf))
	until := time.Now().Add(pki.Grace).UTC().Format(time.RFC3339)
	for i := 0; list.Len() < store.MaxDoc-200; i++ {
		fmt.Fprintf(&list, `,"%032x":{"at":"2026-11-01T00:00:00Z","by":"the controller","until":"%s"}`, i, until)
	}
	list.WriteString("}}")
	must(c.disk.Write(t.Context(), []store.Change{{Key: revocationsKey(), Doc: []byte(list.String()),
		IfVersion: store.New}}))(t)
	c.await("what the list revokes counts no more", func() bool {
		_, err := c.TLS.Shown([]*x509.Certificate{leaf})
		return errors.Is(err, &identity.PeerError{Fault: identity.Revoked})
	})
	must(people{c.Server}.RemoveHost(t.Context(), &controllerv1.RemoveHostRequest{Name: "esx1"}))(t)
	if err := h.renew(); err == nil {
		t.Error("it renews after it was removed")
	}
	c.pass(pki.Grace + pki.CertificateLife + day)
	c.up("esx3")
	must(people{c.Server}.RemoveHost(t.Context(), &controllerv1.RemoveHostRequest{Name: "esx3"}))(t)
	if n := len(c.disk.List(revokedKind)); n != 1 {
		t.Errorf("%d hosts are revoked, of which one has a certificate", n)
	}
}

// Tokens for joining that expired long ago go when another one is made.
func TestS122_OldJoinTokensGo(t *testing.T) {
	c := newController(t)
	c.joins("esx1")
	c.token()
	c.pass(tokens.KeepExpired)
	if c.token(); len(c.disk.List(store.KindToken)) != 3 {
		t.Error("one goes whose owner is to be told that it has expired")
	}
	c.pass(2 * time.Hour)
	if c.token(); len(c.disk.List(store.KindToken)) != 2 {
		t.Errorf("there are %d tokens, and 2 are new", len(c.disk.List(store.KindToken)))
	}
}
