package changes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

const base = `
switches:
  - name: lab
    uplinks: [{name: u1, device: eno1}]
    portGroups:
      - {name: web, vlan: {access: 100}}
      - {name: other, vlan: {access: 200}, overrides: {blocked: false}}
ports:
  - {name: a, switch: lab, portGroup: web, device: pa, mac: "02:00:00:00:00:0a"}
  - {name: b, switch: lab, portGroup: web, device: pb}
`

func parse(t *testing.T, content string) *spec.Config {
	t.Helper()
	cfg, err := spec.Parse("heddle.yaml", []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestDiffReadsLikeTheChange(t *testing.T) {
	from := parse(t, base)
	to := parse(t, `
switches:
  - name: lab
    mtu: 9000
    uplinks: [{name: u2}, {name: u3, monitoring: {ipfix: true}}]
    ipfix: {collectors: [{address: 192.0.2.9, shape: vds}], idleFlowTimeout: 20s}
    lags: [{name: lag1, uplinks: [u2, u3], mode: active}]
    portGroups:
      - {name: web, vlan: {trunk: ["0", "10-20"]}}
      - {name: new}
ports:
  - {name: b, switch: lab, portGroup: web, device: px}
`)
	got, err := Between(from, to)
	if err != nil {
		t.Fatal(err)
	}
	want := []api.Change{
		{Kind: "-", Object: api.ObjectRef{Kind: api.UplinkObject, Switch: "lab", Name: "u1"}},
		{Kind: "-", Object: api.ObjectRef{Kind: api.PortGroupObject, Switch: "lab", Name: "other"}},
		{Kind: "-", Object: api.ObjectRef{Kind: api.PortObject, Switch: "lab", Name: "a"}},
		{Kind: "+", Object: api.ObjectRef{Kind: api.SwitchObject, Name: "lab"}, Field: "mtu",
			New: plan.FieldValueOf(9000)},
		{Kind: "+", Object: api.ObjectRef{Kind: api.SwitchObject, Name: "lab"}, Field: "lags",
			New: plan.FieldValueOf([]plan.Members{{
				{Name: "name", Value: plan.FieldValueOf("lag1")},
				{Name: "uplinks", Value: plan.FieldValueOf([]string{"u2", "u3"})},
				{Name: "mode", Value: plan.FieldValueOf("active")}}})},
		{Kind: "+", Object: api.ObjectRef{Kind: api.SwitchObject, Name: "lab"}, Field: "ipfix.collectors",
			New: plan.FieldValueOf([]plan.Members{{
				{Name: "address", Value: plan.FieldValueOf("192.0.2.9")},
				{Name: "shape", Value: plan.FieldValueOf("vds")}}})},
		{Kind: "+", Object: api.ObjectRef{Kind: api.SwitchObject, Name: "lab"}, Field: "ipfix.idleFlowTimeout",
			New: plan.FieldValueOf(20 * time.Second), Unit: plan.UnitSeconds},
		{Kind: "+", Object: api.ObjectRef{Kind: api.UplinkObject, Switch: "lab", Name: "u2"}},
		{Kind: "+", Object: api.ObjectRef{Kind: api.UplinkObject, Switch: "lab", Name: "u3"}},
		{Kind: "+", Object: api.ObjectRef{Kind: api.UplinkObject, Switch: "lab", Name: "u3"}, Field: "monitoring.ipfix",
			New: plan.FieldValueOf(true)},
		{Kind: "+", Object: api.ObjectRef{Kind: api.PortGroupObject, Switch: "lab", Name: "web"}, Field: "vlan.trunk",
			New: plan.FieldValueOf([]string{"0", "10-20"})},
		{Kind: "-", Object: api.ObjectRef{Kind: api.PortGroupObject, Switch: "lab", Name: "web"}, Field: "vlan.access",
			Old: plan.FieldValueOf(100)},
		{Kind: "+", Object: api.ObjectRef{Kind: api.PortGroupObject, Switch: "lab", Name: "new"}},
		{Kind: "~", Object: api.ObjectRef{Kind: api.PortObject, Switch: "lab", Name: "b"}, Field: "device",
			Old: plan.FieldValueOf("pb"), New: plan.FieldValueOf("px")},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	lines := []string{}
	for _, c := range got {
		lines = append(lines, c.String())
	}
	if d := cmp.Diff([]string{
		"- uplink lab/u1", "- port group lab/other", "- port a", "+ switch lab mtu: 9000",
		"+ switch lab lags: [{name: lag1, uplinks: [u2, u3], mode: active}]",
		"+ switch lab ipfix.collectors: [{address: 192.0.2.9, shape: vds}]", "+ switch lab ipfix.idleFlowTimeout: 20s",
		"+ uplink lab/u2", "+ uplink lab/u3", "+ uplink lab/u3 monitoring.ipfix: true",
		"+ port group lab/web vlan.trunk: [0, 10-20]", "- port group lab/web vlan.access: 100", "+ port group lab/new",
		"~ port b device: pb → px"}, lines); d != "" {
		t.Error(d)
	}
	b, err := json.Marshal(got)
	var back []api.Change
	if err == nil {
		err = json.Unmarshal(b, &back)
	}
	if d := cmp.Diff(got, back); err != nil || d != "" {
		t.Errorf("JSON: %v %s\n%s", err, d, b)
	}
	if same, err := Between(from, parse(t, base)); err != nil || len(same) != 0 {
		t.Errorf("equal files differ: %v %v", same, err)
	}
}

// Writing out a value that was already in effect, built in or inherited, is no change, and neither is leaving it out
// again.
func TestAFieldThatMeansTheSameIsNoChange(t *testing.T) {
	plain := parse(t, base)
	spelled := parse(t, `
switches:
  - name: lab
    kind: distributed
    mtu: 1500
    upDelay: 0.1s
    discovery: {lldp: listen}
    ipfix: {observationDomainId: 0, activeFlowTimeout: 1m, idleFlowTimeout: 15s, samplingRate: 0, internalFlowsOnly: false, biflow: false, templates: {every: 1m, packets: 1000}, maxFlows: 262144}
    checks: {reversePath: true, reversePathPromiscuous: true, blockGuestBPDU: true}
    defaults:
      vlan: {none: true}
      blocked: false
      monitoring: {ipfix: false, observe: both}
      security: {promiscuous: reject, macChanges: reject, forgedTransmits: reject, macLearning: {enabled: false, limit: 4096, limitPolicy: drop, ageing: 10m, unicastFlooding: true}}
      teaming: {policy: originating-port, active: [u1], standby: [], failback: true, notifySwitches: true, failureDetection: link}
    uplinks: [{name: u1, device: eno1, vlans: ["0-4094"], blocked: false, monitoring: {ipfix: false, observe: both}}]
    portGroups:
      - {name: web, vlan: {access: 100}, security: {promiscuous: reject}, overrides: {blocked: true, resetAtDisconnect: true, vlan: true}}
      - {name: other, vlan: {access: 200}, overrides: {blocked: false}}
ports:
  - {name: a, switch: lab, portGroup: web, device: pa, mac: "02:00:00:00:00:0a", role: vnic, vlan: {access: 100}}
  - {name: b, switch: lab, portGroup: web, device: pb}
`)
	for _, c := range []struct {
		from, to *spec.Config
		kind     api.ChangeKind
	}{{plain, spelled, api.Added}, {spelled, plain, api.Removed}} {
		got, err := Between(c.from, c.to)
		// changes that count
		change := api.Change{Kind: c.kind, Object: api.ObjectRef{Kind: api.PortGroupObject, Switch: "lab", Name: "web"},
			Field: "overrides.vlan", New: plan.FieldValueOf(true)}
		if c.kind == api.Removed {
			change.Old, change.New = change.New, change.Old
		}
		if d := cmp.Diff([]api.Change{change}, got); err != nil || d != "" {
			t.Errorf("%v %s", err, d)
		}
	}
}

// The values used for left-out fields are those of the plan: if each of them is written out, no port changes.
func TestWhatIsLeftOutIsWhatThePlanHas(t *testing.T) {
	cfg := parse(t, base)
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, r := range p.Switches[0].Ports[1].Rows() {
		said[r.Policy] = r.Value.String()
	}
	builtIn := builtInPolicy(&cfg.Switches[0])
	for path, got := range said {
		want, ok := builtIn[path]
		want = strings.Trim(want, "[]")
		if path != "vlan" && (!ok || !sameValue(path, got, orNone(want))) {
			t.Errorf("%s: the plan has %q, what is left out counts as %q", path, got, want)
		}
	}
	if len(said) == 0 {
		t.Error("the port has no policy: this test is void")
	}
}

func orNone(names string) string {
	if names == "" {
		return "none"
	}
	return names
}

// A VLAN policy is inherited as a whole: a trunk does not inherit the tag protocol of another trunk.
func TestATrunkOfItsOwnInheritsNothingOfAnother(t *testing.T) {
	const file = `
switches:
  - name: lab
    portGroups:
      - {name: web, vlan: {trunk: ["1-9"], outer: 802.1ad}, overrides: {vlan: true}}
ports:
  - {name: a, switch: lab, portGroup: web, device: pa, vlan: {trunk: ["1-9"]%s}}
`
	got, err := Between(parse(t, fmt.Sprintf(file, ", outer: 802.1ad")), parse(t, fmt.Sprintf(file, "")))
	want := []api.Change{{Kind: api.Removed, Object: api.ObjectRef{Kind: api.PortObject, Switch: "lab", Name: "a"},
		Field: "vlan.outer", Old: plan.FieldValueOf("802.1ad")}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	if got, err := Between(parse(t, fmt.Sprintf(file, ", outer: 802.1q")),
		parse(t, fmt.Sprintf(file, ""))); err != nil || len(got) > 0 {
		t.Errorf("the default written out: %v %v", got, err)
	}
}

// Ports that go to another overlay segment, or out of one, are named: nobody there reaches them as before.
func TestS84_AnotherSegmentIsAnEffectOnPorts(t *testing.T) {
	const file = `
switches:
- name: lab
  tunnel: {endpoints: [{address: 192.0.2.1}]}
  portGroups: [{name: web, %s}]
ports:
- {name: a, switch: lab, portGroup: web, device: pa}
- {name: b, switch: lab, portGroup: web, device: pb}
`
	resolved := func(group string) *plan.Plan {
		p, err := plan.Resolve(parse(t, fmt.Sprintf(file, group)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct{ before, after, want string }{
		{"overlay: {vni: 5000}", "overlay: {vni: 5001}", "change overlay.vni 5000 → 5001"},
		{"vlan: {none: true}", "overlay: {vni: 5001}", "change overlay.vni none → 5001"},
		{"overlay: {vni: 5000}", "vlan: {none: true}", "change overlay.vni 5000 → none"},
		{"overlay: {vni: 5000}", "overlay: {vni: 5000}", ""},
	} {
		t.Run(c.before+" to "+c.after, func(t *testing.T) {
			var got []string
			for _, e := range Effects(resolved(c.before), resolved(c.after)) {
				got = append(got, e.Text)
			}
			want := []string{"2 ports of port group lab/web " + c.want}
			if c.want == "" {
				want = nil
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
