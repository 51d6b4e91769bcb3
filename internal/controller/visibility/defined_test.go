package visibility

import (
	"reflect"
	"strings"
	"testing"

	"heddle/internal/controller/inventory"
	"heddle/internal/platform/access/roles"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

const before = `switches:
  - name: dvs
    uplinks: [{name: uplink1}]
    portGroups:
      - name: web
        vlan: {access: 10}
        security: {promiscuous: reject}
      - name: db
        vlan: {access: 20}
  - name: lab
    portGroups: [{name: web, vlan: {access: 30}}]
templates:
  - name: all
    switches: [{name: dvs, uplinks: [{name: uplink1, device: eno1}]}]
`

func set(t *testing.T, text string) *slice.Set {
	t.Helper()
	d, err := spec.ParseDefinition("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := inventory.Of(d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func access(grants ...string) *roles.Access {
	var list []roles.Grant
	for _, g := range grants {
		role, on, _ := strings.Cut(g, " ")
		s, err := roles.ParseScope(on)
		if err != nil {
			panic(err)
		}
		list = append(list, roles.Grant{Role: roles.Role(role), Scope: s})
	}
	return roles.NewAccess(list...)
}

// Each change is judged field by field: what each role may and may not.
func TestJudge(t *testing.T) {
	edit := func(from, to string) string {
		if !strings.Contains(before, from) {
			t.Fatalf("there is no %q", from)
		}
		return strings.Replace(before, from, to, 1)
	}
	const net, sec = "network-admin", "security-admin"
	for name, c := range map[string]struct {
		after string
		may   []string // each a caller who may do it alone
		not   []string
		says  []string // to all of those who may not
	}{
		"a VLAN": {edit("access: 10", "access: 11"), []string{net, net + " dvs", net + " dvs/web", "admin dvs/web"},
			[]string{sec, sec + " dvs/web", net + " dvs/db", net + " lab", "operator", "viewer", "capture", ""},
			[]string{"vlan.access of portGroup dvs/web: this needs network-admin or admin of port group dvs/web"}},
		"security": {edit("promiscuous: reject", "promiscuous: accept"), []string{sec, sec + " dvs/web", "admin dvs"},
			[]string{net, net + " dvs/web", sec + " dvs/db", "operator", ""},
			[]string{"security.promiscuous of portGroup dvs/web: this needs security-admin or admin of port group"}},
		"security reset": {edit("        security: {promiscuous: reject}\n", ""), []string{sec}, []string{net},
			[]string{"security.promiscuous"}},
		"the address guard": {edit("vlan: {access: 20}",
			"vlan: {access: 20}\n        security: {addressGuard: {enabled: true}}"),
			[]string{sec}, []string{net}, []string{"security.addressGuard.enabled of portGroup dvs/db"}},
		"both": {strings.Replace(edit("access: 10", "access: 11"), "promiscuous: reject", "promiscuous: accept", 1),
			[]string{"admin dvs/web"}, []string{net, sec}, nil},
		"overrides of security": {edit("vlan: {access: 20}",
			"vlan: {access: 20}\n        overrides: {security: true}"),
			[]string{sec}, []string{net}, []string{"overrides.security"}},
		"overrides of VLANs": {edit("vlan: {access: 20}",
			"vlan: {access: 20}\n        overrides: {vlan: true}"),
			[]string{net}, []string{sec}, []string{"overrides.vlan"}},
		"defaults of the switch": {edit("uplinks: [{name: uplink1}]",
			"uplinks: [{name: uplink1}]\n    defaults: {security: {forgedTransmits: accept}}"),
			[]string{sec, sec + " dvs"}, []string{net, sec + " dvs/web"},
			[]string{"defaults.security.forgedTransmits of switch dvs"}},
		"checks of the switch": {edit("uplinks: [{name: uplink1}]",
			"uplinks: [{name: uplink1}]\n    checks: {blockGuestBPDU: false}"),
			[]string{sec + " dvs"}, []string{net}, []string{"checks.blockGuestBPDU of switch dvs"}},
		"a new port group": {edit("      - name: db", "      - name: new\n        vlan: {access: 5}\n      - name: db"),
			[]string{net, net + " dvs"}, []string{sec, net + " dvs/web"}, []string{"adding portGroup dvs/new"}},
		"a new port group that is open": {edit("      - name: db",
			"      - name: new\n        security: {macChanges: accept}\n      - name: db"),
			[]string{"admin dvs"}, []string{net, sec}, nil},
		"a port group removed": {edit("      - name: db\n        vlan: {access: 20}\n", ""),
			[]string{net, net + " dvs/db"},
			[]string{sec, net + " dvs/web"}, []string{"removing portGroup dvs/db"}},
		"one removed that was protected": {edit("      - name: web\n        vlan: {access: 10}\n"+
			"        security: {promiscuous: reject}\n", ""),
			[]string{"admin dvs"}, []string{net, sec}, nil},
		"a template": {edit("device: eno1", "device: eno2"), []string{net}, []string{net + " dvs", sec},
			[]string{"of template all: this needs network-admin or admin of the whole cluster"}},
		"a static port of another's port group": {before +
			"ports: [{id: \"33\", switch: dvs, portGroup: db, name: x}]\n",
			nil, []string{net + " dvs/web", sec}, []string{"staticPort 33"}},
	} {
		t.Run(name, func(t *testing.T) {
			have := set(t, before)
			after, err := spec.ParseDefinition("f.yaml", []byte(c.after))
			if err != nil && name != "a static port of another's port group" {
				t.Fatal(err)
			}
			var next *slice.Set
			if err == nil {
				if next, err = inventory.Of(after); err != nil {
					t.Fatal(err)
				}
			} else { // the definition has no static ports: the object alone is judged
				next = have.Clone()
				next.Put(slice.Object{Key: slice.Key{Kind: slice.StaticPort, Name: "33"},
					Doc: []byte(`{"id":"33","switch":"dvs","portGroup":"db","name":"x"}`)})
			}
			for _, who := range c.may {
				if err := Judge("ann", access(who), have, slice.Between(have, next)); err != nil {
					t.Errorf("%s may not: %v", who, err)
				}
			}
			for _, who := range c.not {
				a := access()
				if who != "" {
					a = access(who)
				}
				err := Judge("ann", a, have, slice.Between(have, next))
				if err == nil {
					t.Errorf("%q may", who)
					continue
				}
				for _, s := range c.says {
					if !strings.Contains(err.Error(), s) {
						t.Errorf("%q is told %v", who, err)
					}
				}
			}
		})
	}
}

// Nobody has a definition changed by what they do not see of it, and nobody is shown more than their part.
func TestVisibleAndComplete(t *testing.T) {
	have := set(t, before)
	web := access("network-admin dvs/web")
	seen := Visible(web, have)
	var names []string
	for o := range seen.All() {
		names = append(names, o.Key.String())
	}
	if len(names) != 2 || seen.Len() != 2 {
		t.Errorf("seen: %v", names)
	}
	if next := Complete(web, have, seen, false); !slice.Between(have, next).Empty() {
		t.Errorf("what was read and written back changes %+v", slice.Between(have, next))
	}
	all := access("viewer", "network-admin dvs/web")
	if !slice.Between(have, Complete(all, have, Visible(all, have), false)).Empty() {
		t.Error("who sees all changes something")
	}
	// Of an earlier definition one's own part comes back, and nothing else.
	earlier := set(t, strings.NewReplacer("access: 10", "access: 9", "access: 20", "access: 19").Replace(before))
	c := slice.Between(have, Complete(web, have, earlier, true))
	if len(c.Put) != 1 || c.Put[0].Name != "dvs/web" || len(c.Removed) != 0 {
		t.Errorf("brought back: %+v", c)
	}
	// Who names what they do not see changes it, and is refused.
	c = slice.Between(have, Complete(web, have, earlier, false))
	if err := Judge("ann", web, have, c); err == nil || !strings.Contains(err.Error(), "portGroup dvs/db") {
		t.Errorf("judged: %v", err)
	}
}

// Every field of the file has a permission that somebody has thought about.
func TestOf_KnowsEveryField(t *testing.T) {
	for _, v := range []any{spec.Switch{}, spec.PortGroup{}, spec.PortSettings{}, spec.HostTemplate{}, spec.HostEntry{},
		spec.Policy{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name == "portGroups" || name == "defaults" {
				continue // inlined, an object of its own, or looked at by its fields
			}
			if name == "overrides" {
				name += ".vlan"
			}
			if needs := roles.Of(name); len(needs) != 1 {
				t.Errorf("%T.%s: nobody has said which permission a change of it takes (roles.Of)", v, name)
			}
		}
	}
}
