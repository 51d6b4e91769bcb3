package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/backup/service"
	"heddle/internal/platform/store"
)

const backedUp = `switches:
- name: dvs
  uplinks: [{name: uplink1}]
  portGroups:
  - {name: web, vlan: {access: 10}}
  - {name: db, vlan: {access: 20}, binding: static, ports: {number: 40}, overrides: {security: true}}
templates:
- name: all
  switches: [{name: dvs, uplinks: [{name: uplink1, device: eno1}]}]
  hostPorts: [{name: vmk1, switch: dvs, portGroup: web, pools: [192.0.2.0/24]}]
`

// backup is a backup of what a controller has.
func (c *controller) backup(of string) string {
	c.t.Helper()
	return must(c.backups.ExportBackup(c.t.Context(), &controllerv1.ExportBackupRequest{
		Switch: of}))(c.t).GetContent()
}

func (c *controller) imports(text string, q *controllerv1.ImportBackupRequest) (*controllerv1.ImportBackupResponse,
	error) {
	q.File, q.Content = "b.yaml", text
	return c.backups.ImportBackup(c.t.Context(), q)
}

// body is what of a backup is the same at another time, in another cluster.
func body(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if !slices.Contains([]string{"checksum", "made", "cluster", "epoch", "revision", "version"}, name) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// used is a controller with hosts, static ports in use, and settings of one.
func used(t *testing.T) *controller {
	c := newController(t)
	c.define(backedUp)
	c.joins("esx1")
	c.joins("esx2")
	var id string
	for i, name := range []string{"vm-1", "vm-2", "vm-3"} {
		p := must(c.Store.Claim(t.Context(), store.ClaimRequest{PortGroup: "dvs/db", Binding: store.Binding{
			Host: c.fleet.names["esx1"].id, VM: name, Adapter: "eth0", MAC: fmt.Sprintf("02:00:00:00:00:%02x",
				i+1)}}))(t)
		id = cmp.Or(id, p.ID)
	}
	c.define(backedUp + "ports:\n- {id: \"" + id + "\", switch: dvs, portGroup: db, security: {promiscuous: accept}}\n")
	return c
}

func TestS82_AnImportOnNothingRestoresAll(t *testing.T) {
	text := used(t).backup("")
	c := newController(t)
	dry := must(c.imports(text, &controllerv1.ImportBackupRequest{DryRun: true}))(t)
	if len(c.Store.List(store.KindPorts))+len(c.Store.List(store.KindSwitch)) > 0 {
		t.Error("a dry run writes")
	}
	out := must(c.imports(text, &controllerv1.ImportBackupRequest{}))(t)
	for _, o := range []*controllerv1.ImportBackupResponse{dry, out} {
		if o.GetIdentifiers() != "keep" || o.GetStaticPorts() != 40 || o.GetBindings() != 3 || o.GetAddresses() != 2 ||
			len(o.GetDefined().GetObjects()) != 5 {
			t.Errorf("%v", o)
		}
		if notes := strings.Join(o.GetNotes(), "\n"); !strings.Contains(notes, "host esx1 has to join") {
			t.Errorf("notes: %s", notes)
		}
	}
	again := c.backup("")
	// Its hosts have not joined: their names are not known any more, but for what waits for them.
	was, is := body(text), body(again)
	is = strings.Replace(is, "addresses:\n", hostLines(was)+"addresses:\n", 1)
	is = strings.ReplaceAll(is, "    hostID: ", "    host: esx1\n    hostID: ")
	if was != is {
		t.Errorf("before:\n%s\nafter:\n%s", was, is)
	}
	// A host that joins by its name has its addresses again, and its VM its port.
	c.joins("esx2")
	c.joins("esx1")
	c.define(definitionIn(again))
	if got := body(c.backup("")); addressesIn(got) != addressesIn(was) {
		t.Errorf("addresses before:\n%s\nafter:\n%s", addressesIn(was), addressesIn(got))
	}
	p := must(c.Store.Claim(t.Context(), store.ClaimRequest{PortGroup: "dvs/db", Move: true, Binding: store.Binding{
		Host: c.fleet.names["esx1"].id, VM: "vm-2", Adapter: "eth0", MAC: "02:00:00:00:00:02"}}))(t)
	if !strings.Contains(text, "id: '"+p.ID+"'\n    vm: vm-2") {
		t.Errorf("vm-2 has port %s now, which was not its own:\n%s", p.ID, text)
	}
	// No number is given twice.
	fresh := must(c.Store.Claim(t.Context(), store.ClaimRequest{PortGroup: "dvs/db", Limit: 100, Binding: store.Binding{
		Host: "h", VM: "vm-9", Adapter: "eth0"}}))(t)
	if !strings.Contains(text, "'"+fresh.ID+"'") {
		t.Errorf("a port of the group has number %s", fresh.ID)
	}
}

func hostLines(text string) string {
	_, rest, _ := strings.Cut(text, "hosts:\n")
	list, _, _ := strings.Cut(rest, "addresses:\n")
	return "hosts:\n" + list
}

func addressesIn(text string) string {
	_, rest, _ := strings.Cut(text, "addresses:\n")
	list, _, _ := strings.Cut(rest, "staticPorts:\n")
	return list
}

func definitionIn(backup string) string {
	_, text, _ := strings.Cut(backup, "\n---\n")
	return text
}

func TestS82_AnImportWhereSomethingIsTakesNewIdentifiers(t *testing.T) {
	from := used(t)
	text := from.backup("dvs")
	c := newController(t)
	c.define("switches: [{name: other, uplinks: [{name: u}]}]\n")
	out := must(c.imports(text, &controllerv1.ImportBackupRequest{}))(t)
	if out.GetIdentifiers() != "new" || out.GetBindings() != 0 || !strings.Contains(strings.Join(out.GetNotes(), "\n"),
		"settings of 1 static ports do not come") {
		t.Errorf("%v", out)
	}
	c.await("the ports of the group", func() bool {
		f, err := c.backups.File(t.Context(), "dvs")
		ports, bound := f.Ports()
		return err == nil && ports == 40 && bound == 0
	})
	if a, b := idIn(t, c, "dvs"), idIn(t, from, "dvs"); a == b {
		t.Error("the identifier is the same")
	}
	// Again: everything is there and equal, so that nothing changes.
	out = must(c.imports(text, &controllerv1.ImportBackupRequest{}))(t)
	if n := len(out.GetDefined().GetObjects()); n > 0 {
		t.Errorf("%d objects change at the second import: %v", n, out.GetDefined())
	}
	// Under another name: not while both give a host a port of one name.
	if _, err := c.imports(text, &controllerv1.ImportBackupRequest{As: "copy"}); err == nil ||
		!strings.Contains(err.Error(), "template all is there, and is another: its host port vmk1 is there") {
		t.Error(err)
	}
	c.define(definitionIn(strings.Replace(c.backup(""), "name: all", "name: first", 1)))
	plain := strings.Split(backedUp, "  hostPorts")[0]
	from.define(plain)
	must(c.imports(from.backup("dvs"), &controllerv1.ImportBackupRequest{As: "copy"}))(t)
	if _, ok := c.Store.Get(store.Key{Kind: store.KindPortGroup, Name: "copy/db"}); !ok {
		t.Error("there is no copy")
	}
}

func idIn(t *testing.T, c *controller, name string) string {
	t.Helper()
	o, ok := c.Store.Get(store.Key{Kind: store.KindSwitch, Name: name})
	if !ok {
		t.Fatalf("no switch %s", name)
	}
	return o.ID
}

func TestS82_WhatCollidesIsSaidAndNothingComes(t *testing.T) {
	c := used(t)
	text := c.backup("")
	c.define(strings.Replace(backedUp, "access: 10", "access: 11", 1))
	before := body(c.backup(""))
	dry := must(c.imports(strings.Clone(text), &controllerv1.ImportBackupRequest{DryRun: true}))(t)
	if got := strings.Join(dry.GetCollisions(), "\n"); got != "switch dvs is there, and is another" {
		t.Errorf("collisions: %s", got)
	}
	if _, err := c.imports(text, &controllerv1.ImportBackupRequest{}); err == nil ||
		!strings.Contains(err.Error(), "switch dvs is there, and is another") {
		t.Errorf("%v", err)
	}
	if after := body(c.backup("")); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	// In place of what there is: port groups keep their ports, their settings come back.
	out := must(c.imports(text, &controllerv1.ImportBackupRequest{Replace: true, Identifiers: "keep"}))(t)
	if out.GetStaticPorts() != 0 || len(out.GetDefined().GetObjects()) != 2 {
		t.Errorf("%v", out)
	}
	if after := body(c.backup("")); after != body(text) {
		t.Errorf("backup:\n%s\nafter:\n%s", body(text), after)
	}
	diff := must(c.backups.CompareBackup(t.Context(), &controllerv1.CompareBackupRequest{
		Content: text}))(t)
	if len(diff.GetObjects())+len(diff.GetPorts())+len(diff.GetNotes()) > 0 {
		t.Errorf("different: %v", diff)
	}
}

func TestCompareBackup_SaysWhatIsAnother(t *testing.T) {
	c := used(t)
	text := c.backup("dvs")
	f := must(c.backups.File(t.Context(), ""))(t)
	was := f.StaticPorts[0].Bound[0]
	if err := c.Store.Release(t.Context(), store.ReleaseRequest{PortGroup: "dvs/db", Port: was.ID, VM: was.VM,
		Adapter: was.Adapter}); err != nil {
		t.Fatal(err)
	}
	c.define(strings.Replace(backedUp, "access: 10", "access: 11", 1) + "hosts: [{name: esx5}]\n")
	diff := must(c.backups.CompareBackup(t.Context(), &controllerv1.CompareBackupRequest{
		Content: text}))(t)
	var got []string
	for _, o := range diff.GetObjects() {
		got = append(got, fmt.Sprintln(o.GetKind(), o.GetName(), o.GetChange(), len(o.GetFields())))
	}
	for _, p := range diff.GetPorts() {
		got = append(got, fmt.Sprintln(p.GetPort(), p.GetChange(), p.GetOld()))
	}
	want := []string{"portGroup dvs/web changed 1\n", "staticPort " + f.Definition.Ports[0].ID + " removed 0\n",
		was.ID + " released adapter eth0 of VM " + was.VM + " on esx1, " + was.MAC + "\n"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// breaking is a store that fails after so many transactions with ports.
type breaking struct {
	Store
	err error
}

func (b breaking) ImportPorts(ctx context.Context, group string, ports []store.Port, mark *store.Change) error {
	return errors.Join(b.Store.ImportPorts(ctx, group, ports[:len(ports)/2], mark), b.err)
}

// dead is one whose controller is killed then: nothing is cleared away.
type dead struct{ breaking }

func (d dead) RemovePorts(context.Context, string, bool, *store.Change) error {
	return errors.New("killed")
}

func TestImportBackup_IsAllOrNothing(t *testing.T) {
	text := used(t).backup("")
	for _, c := range []struct {
		name string
		with func(s Store) Store
	}{
		{"the store fails", func(s Store) Store { return breaking{s, errors.New("no more")} }},
		{"the controller is killed", func(s Store) Store { return dead{breaking{s, errors.New("no more")}} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := newController(t)
			whole, fails := to.Store, *to.Server
			fails.Store = c.with(whole)
			fails.backups = backupsOf(&fails)
			failing := &controller{Server: &fails, t: t}
			if _, err := failing.imports(text, &controllerv1.ImportBackupRequest{}); err == nil {
				t.Fatal("the import ends well")
			}
			if n := len(whole.List(store.KindSwitch)) + len(whole.List(store.KindPortGroup)); n > 0 {
				t.Errorf("%d objects came", n)
			}
			to.define(strings.Replace(backedUp, "access: 10", "access: 12", 1)) // others go on
			if err := whole.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, left := whole.Get(service.MarkKey()); left {
				t.Error("the mark is left")
			}
			f := must(to.backups.File(t.Context(), ""))(t)
			if ports, bound := f.Ports(); ports != 40 || bound != 0 {
				t.Errorf("%d ports, %d of them bound", ports, bound)
			}
			// And what was cut off can be done again.
			if _, err := to.imports(text, &controllerv1.ImportBackupRequest{Replace: true}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestImportBackup_ALargeOneKeepsIdentifiers(t *testing.T) {
	from := newController(t)
	from.define(large(0, 400, 7))
	text := from.backup("")
	to := newController(t)
	must(to.imports(text, &controllerv1.ImportBackupRequest{}))(t)
	if a, b := body(text), body(to.backup("")); a != b {
		t.Errorf("%d bytes, then %d that differ", len(a), len(b))
	}
}
