package rpc

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/inventory"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
	"heddle/internal/slice/fields"
)

// tomorrow is the definition's port group with a field that only a later version knows.
func tomorrow(t *testing.T, set *slice.Set, field string) *slice.Set {
	t.Helper()
	later := set.Clone()
	o, ok := set.Get(slice.Key{Kind: slice.PortGroup, Name: "dvs/web"})
	if !ok {
		t.Fatal("there is no port group")
	}
	o.Doc = []byte(strings.TrimSuffix(string(o.Doc), "}") + "," + field + "}")
	later.Put(o)
	return later
}

// writes puts objects into the store, as a controller of another version does.
func (c *controller) writes(set *slice.Set) {
	c.t.Helper()
	_, versions := definition.Stored(c.Store)
	revision := must(c.revision())(c.t)
	must(c.definitions().Write(c.t.Context(), "a later version", revision, slice.Between(&slice.Set{}, set),
		versions, nil))(c.t)
}

func (c *controller) revision() (int64, error) {
	o, _ := c.Store.Get(definition.Key())
	return o.Version, nil
}

// What a controller and a host do not know is not handed to the host, is named, and outlasts a change by that
// controller.
func TestS83_WhatOnlyALaterVersionKnowsIsNamedAndSurvives(t *testing.T) {
	c := newController(t)
	m := c.up("a")
	c.writes(tomorrow(t, setOf(t, 10), `"security":{"tomorrow":true},"story":{"x":1}`))
	c.await("the field is missed", func() bool { return c.state("a") == controllerv1.HostState_HOST_STATE_WARNING })
	why := strings.Join(c.shown("a").GetProblems(), "\n")
	for _, part := range []string{"portGroup dvs/web: security.tomorrow is not active: the agent (test) does not know",
		"story is not active"} {
		if !strings.Contains(why, part) {
			t.Errorf("the controller says %q, without %q", why, part)
		}
	}
	for _, o := range m.given.Objects {
		if strings.Contains(string(o.Doc), "tomorrow") {
			t.Errorf("the host was handed %s", o.Doc)
		}
	}
	shown := must(people{c.Server}.GetDefinition(t.Context(), nil))(t).GetContent()
	if !strings.Contains(shown, "# portGroup dvs/web has security.tomorrow, story, which this controller") {
		t.Errorf("the definition:\n%s", shown)
	}
	out := must(people{c.Server}.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{
		Content: strings.ReplaceAll(shown, "access: 10", "access: 30")}))(t)
	if len(out.GetKept()) != 1 || !strings.Contains(out.GetKept()[0], "security.tomorrow, story") {
		t.Errorf("the answer: %v", out)
	}
	o, _ := c.Store.Get(store.Key{Kind: "portGroup", Name: "dvs/web"})
	if doc := string(o.Doc); !strings.Contains(doc, `"tomorrow":true`) || !strings.Contains(doc, `"story":{"x":1}`) ||
		!strings.Contains(doc, "30") {
		t.Errorf("the store has %s", doc)
	}
}

// A change that would leave ports of some host less protected than it says is refused unless that is meant.
func TestForesee_RefusesASecurityFieldThatAHostDoesNotKnow(t *testing.T) {
	have := setOf(t, 10)
	f := fleetOf(t, have)
	arrives(t, f, "old", nil)
	newer := arrives(t, f, "new", nil)
	newer.host.fitter = f.fitterOf(fields.Known().Text() + "\npolicy.security.tomorrow\npolicy.story")
	for _, c := range []struct {
		field   string
		allow   bool
		refused bool
	}{{`"story":{"x":1}`, false, false}, {`"security":{"tomorrow":true}`, false, true},
		{`"security":{"tomorrow":true}`, true, false}} {
		t.Run(c.field, func(t *testing.T) {
			next := tomorrow(t, have, c.field)
			out := &controllerv1.ApplyDefinitionResponse{}
			err := f.foresee(&fanout.Answers{}, have, slice.Between(have, next), must(inventory.New(next))(t), nil,
				&controllerv1.ApplyDefinitionRequest{AllowUnprotected: c.allow}, out)
			if (connect.CodeOf(err) == connect.CodeFailedPrecondition) != c.refused {
				t.Errorf("%v", err)
			}
			if c.refused && (!strings.Contains(err.Error(), "host old would go without portGroup dvs/web: security."+
				"tomorrow") || !strings.Contains(err.Error(), "--allow-unprotected")) {
				t.Errorf("%v", err)
			}
			if len(out.GetUnknown()) != 1 || out.GetUnknown()[0].GetHost() != "old" || !slices.Contains(out.GetHosts(),
				"old") {
				t.Errorf("the answer: %v", out)
			}
		})
	}
}

// A dry run says which fields change, which ports that concerns, and where the host's own way is at risk.
func TestForesee_SaysWhatADryRunWouldDo(t *testing.T) {
	have := setOf(t, 10, "db")
	f := fleetOf(t, have)
	for _, name := range []string{"a", "b"} {
		m := arrives(t, f, name, nil)
		r := &controllerv1.HostReport{Ports: []*controllerv1.HostPort{
			{Switch: "dvs", PortGroup: "web", Name: "vm1"}, {Switch: "dvs", PortGroup: "db", Name: "vm2"}}}
		for range 10 {
			r.Ports = append(r.Ports, &controllerv1.HostPort{Switch: "dvs", PortGroup: "web", Name: "more"})
		}
		if name == "b" {
			r.Ports[0].Role, r.Ports[0].Name = "host", "vmk0"
		}
		f.said(m.host, m.conn, &controllerv1.FollowSliceRequest{Report: r})
	}
	foresee := func(next *slice.Set) *controllerv1.ApplyDefinitionResponse {
		out := &controllerv1.ApplyDefinitionResponse{}
		if err := f.foresee(&fanout.Answers{}, have, slice.Between(have, next), must(inventory.New(next))(t), nil,
			&controllerv1.ApplyDefinitionRequest{DryRun: true}, out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	out := foresee(setOf(t, 30, "db"))
	o := out.GetObjects()[0]
	if len(out.GetObjects()) != 1 || o.GetChange() != "changed" || len(o.GetFields()) != 1 ||
		o.GetFields()[0].GetField() != "vlan.access" || o.GetFields()[0].GetOld() != "10" ||
		o.GetFields()[0].GetNew() != "30" {
		t.Errorf("objects %v", out.GetObjects())
	}
	g := out.GetAffected()[0]
	if len(out.GetAffected()) != 1 || g.GetPortGroup() != "web" || g.GetPorts() != 22 || g.GetHosts() != 2 ||
		len(g.GetSome()) != mostNamed || g.GetSome()[0] != "a/vm1" {
		t.Errorf("affected %v", out.GetAffected())
	}
	if r := out.GetAtRisk(); len(r) != 1 || r[0].GetHost() != "b" || !strings.Contains(r[0].GetProblems()[0], "vmk0") {
		t.Errorf("at risk %v", r)
	}
	if out := foresee(tomorrow(t, have, `"monitoring":{"ipfix":true}`)); len(out.GetAtRisk()) != 0 ||
		len(out.GetAffected()) != 1 {
		t.Errorf("what is metered: %v", out)
	}
	if out := foresee(setOf(t, 10)); len(out.GetAffected()) != 1 || out.GetAffected()[0].GetPortGroup() != "db" {
		t.Errorf("a port group is removed: %v", out)
	}
}

// Kinds of objects that only a later version has are made when no controller of an older one is left.
func TestAllKnow_WaitsForTheLastController(t *testing.T) {
	c := newController(t)
	next := setOf(t, 10)
	if err := c.AllKnow(inventory.KindsIn(next)); err != nil {
		t.Error(err)
	}
	next.Put(slice.Object{Key: slice.Key{Kind: "note", Name: "n"}, Doc: []byte("{}")})
	announces := func(id, doc string) {
		must(c.Store.Write(t.Context(), []store.Change{{Key: store.Key{Kind: peers.ControllerKind, Name: id},
			Doc: json.RawMessage(doc), IfVersion: store.Any}}))(t)
	}
	announces("c1", `{"address":"new:1","kinds":"switch portGroup template hostEntry note"}`)
	announces("c2", `{"address":"old:1"}`)
	if err := c.AllKnow(inventory.KindsIn(next)); connect.CodeOf(err) != connect.CodeFailedPrecondition ||
		!strings.Contains(err.Error(), "controller c2 at old:1 does not know objects of the kind note") {
		t.Errorf("%v", err)
	}
	if err := c.AllKnow(inventory.KindsIn(setOf(t, 20))); err != nil {
		t.Errorf("what both know: %v", err)
	}
	announces("c2", `{"address":"old:1","kinds":"switch portGroup template hostEntry note"}`)
	if err := c.AllKnow(inventory.KindsIn(next)); err != nil {
		t.Error(err)
	}
}

func TestRewritten_KeepsWhatALaterVersionWrote(t *testing.T) {
	text := must(rewritten(store.Object{Doc: []byte(`{"name":"a","serial":"1","former":[{}],"later":{"x":1}}`)},
		hostDoc{Name: "a", Serial: "2"}))(t)
	var got map[string]json.RawMessage
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if string(got["later"]) != `{"x":1}` || string(got["serial"]) != `"2"` || got["former"] != nil {
		t.Errorf("%s", text)
	}
}

// A host cannot fill a controller's memory by what it says that it knows.
func TestFitterOf_IsBounded(t *testing.T) {
	f := fleetOf(t, setOf(t, 10))
	m := arrives(t, f, "a", nil)
	for i := range 10 * mostFitters {
		f.fits(m.host, fmt.Sprint("switch.later", i))
	}
	if len(f.fitters) > mostFitters {
		t.Errorf("%d are remembered", len(f.fitters))
	}
	f.fits(m.host, strings.Repeat("x", mostText+1))
	if m.host.fitter != f.fitterOf("") {
		t.Error("a text without end is read")
	}
}

func TestRevertedBy_IsBounded(t *testing.T) {
	r := &controllerv1.RevertedSlice{Version: &controllerv1.SliceVersion{Hash: make([]byte, 32)},
		Why: strings.Repeat("x", 10*mostWhy) + "\x1b[31m"}
	got := revertedBy(&controllerv1.HostReport{Reverted: r})
	if n := len(got.GetWhy()); n == 0 || n > mostWhy+8 {
		t.Errorf("%d bytes are kept", n)
	}
	r.Version.Hash = []byte("short")
	if got := revertedBy(&controllerv1.HostReport{Reverted: r}); got != nil {
		t.Errorf("%v", got)
	}
}
