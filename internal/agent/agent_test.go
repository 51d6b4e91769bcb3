package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

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

func (r *rig) connect(p spec.Port) error {
	return r.command(func(ctx context.Context) error {
		_, err := r.commands.Connect(ctx, api.Connect{Port: p})
		return err
	})
}

func (r *rig) apply(content string) error {
	return r.command(func(ctx context.Context) error {
		_, err := r.files.Apply(ctx, api.Apply{File: "next.yaml", Content: content})
		return err
	})
}

func (r *rig) block(port string, blocked bool) error {
	return r.command(func(ctx context.Context) error {
		_, err := r.commands.Block(ctx, api.Block{Port: port, Blocked: blocked})
		return err
	})
}

func TestNumbersAreKeptAndGivenOnce(t *testing.T) {
	r := newRig(t, base)
	a, b := planned(r.Active().Plan, "a").Number, planned(r.Active().Plan, "b").Number
	if a == 0 || a == b {
		t.Fatalf("numbers %d and %d", a, b)
	}
	if err := r.connect(spec.Port{Name: "c", PortGroup: "web"}); err != nil {
		t.Fatal(err)
	}
	c := planned(r.Active().Plan, "c").Number
	without := strings.Replace(base, "  - {name: a, switch: lab, portGroup: web, device: pa, mac: "+
		"\"02:00:00:00:00:0a\"}\n", "", 1)
	if err := r.apply(without); err != nil {
		t.Fatal(err)
	}
	if err := r.restart(""); err != nil {
		t.Fatal(err)
	}
	if got := planned(r.Active().Plan, "b").Number; got != b {
		t.Errorf("b had %d, has %d", b, got)
	}
	if got := planned(r.Active().Plan, "c").Number; got != c {
		t.Errorf("c had %d, has %d", c, got)
	}
}

func TestFailedChangeLeavesEverythingAsItWas(t *testing.T) {
	r := newRig(t, base)
	before := r.saved()
	r.kernel.fail = errors.New("no room in the kernel")
	if err := r.apply(strings.ReplaceAll(base, "100", "300")); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("apply: %v", err)
	}
	if err := r.connect(spec.Port{Name: "c", PortGroup: "web"}); err == nil {
		t.Error("connect succeeded")
	}
	r.kernel.fail = nil
	r.settler.settle()
	after := r.saved()
	if after.Config != before.Config || len(after.Ports) != 0 ||
		planned(r.kernel.last().Plan, "a").Policy.VLAN.V.ID != 100 {
		t.Errorf("state %+v, VLAN %d", after, planned(r.kernel.last().Plan, "a").Policy.VLAN.V.ID)
	}
}

func TestApplyNeverTouchesWhatWasConnectedByCommand(t *testing.T) {
	r := newRig(t, base)
	port := spec.Port{Name: "c", PortGroup: "web", Device: "pc"}
	for range 2 { // the same request again is no error
		if err := r.connect(port); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.connect(spec.Port{Name: "c", PortGroup: "other"}); !invalid(err) {
		t.Errorf("another port of the name: %v", err)
	}
	if err := r.apply(strings.ReplaceAll(base, "web", "renamed")); !invalid(err) ||
		!strings.Contains(err.Error(), "heddle port disconnect c") {
		t.Errorf("taking its port group away: %v", err)
	}
	if err := r.connect(spec.Port{Name: "d", PortGroup: "none"}); !notFound(err) ||
		strings.Contains(err.Error(), "was connected by command") {
		t.Errorf("a port whose connecting fails counts as one that was connected: %v", err)
	}
	if err := r.connect(spec.Port{Name: "b", PortGroup: "web"}); !invalid(err) ||
		!strings.Contains(err.Error(), "port b is declared in ") {
		t.Errorf("connecting a declared port: %v", err)
	}
	if err := r.apply(strings.Replace(base, "name: b", "name: c", 1)); !invalid(err) ||
		!strings.Contains(err.Error(), "connected by command") {
		t.Errorf("declaring its name: %v", err)
	}
	if err := r.apply("switches: [{name: lab, portGroups: [{name: web}]}]"); err != nil ||
		planned(r.Active().Plan, "c") == nil {
		t.Errorf("apply: %v, port %v", err, planned(r.Active().Plan, "c"))
	}
}

func TestAMissingDeviceIsToldByItsPortOnly(t *testing.T) {
	r := newRig(t, base)
	v := r.answers.view()
	if len(v.Agent.Warnings) != 0 || v.Ports[0].State != api.Pending || v.Ports[0].Reason == "" {
		t.Errorf("warnings %q, which stay when the device comes; port %+v", v.Agent.Warnings, v.Ports[0])
	}
	var out *api.Applied
	err := r.command(func(ctx context.Context) (err error) {
		out, err = r.files.Apply(ctx, api.Apply{File: "next.yaml", Content: base, DryRun: true})
		return err
	})
	if err != nil || len(out.Warnings) == 0 {
		t.Errorf("a dry run does not warn: %v, %+v", err, out)
	}
}

func TestPortThatNoLongerFitsAtStartIsLeftOutAndSaid(t *testing.T) {
	r := newRig(t, base)
	if err := r.connect(spec.Port{Name: "c", PortGroup: "web"}); err != nil {
		t.Fatal(err)
	}
	edited := strings.ReplaceAll(base, "web", "renamed")
	if err := r.restart(edited); err != nil {
		t.Fatal(err)
	}
	if planned(r.Active().Plan, "c") != nil || len(r.ports.misfits) != 1 {
		t.Fatalf("misfits %v", r.ports.misfits)
	}
	if err := r.connect(spec.Port{Name: "d", PortGroup: "other"}); err != nil {
		t.Errorf("a known misfit stands in the way: %v", err)
	}
	if err := r.restart(base); err != nil || planned(r.Active().Plan, "c") == nil {
		t.Errorf("fits again and is not back: %v", err)
	}
}

func TestS9_BlockIsAnOverride(t *testing.T) {
	r := newRig(t, base)
	blocked := func() bool { return planned(r.kernel.last().Plan, "a").Policy.Blocked.V }
	if err := r.block("a", true); err != nil || !blocked() {
		t.Fatalf("block: %v", err)
	}
	n := len(r.kernel.applied)
	if err := r.block("a", true); err != nil || len(r.kernel.applied) != n {
		t.Errorf("block twice: %v, %d plans", err, len(r.kernel.applied)-n)
	}
	if err := r.restart(base); err != nil || !blocked() {
		t.Errorf("lost by a restart: %v", err)
	}
	if err := r.block("a", false); err != nil || blocked() || len(r.saved().Overrides) != 0 {
		t.Errorf("unblock: %v, overrides %v", err, r.saved().Overrides)
	}
	if err := r.apply(strings.Replace(base, "portGroups:", "defaults: {blocked: true}\n    portGroups:",
		1)); err != nil || !blocked() {
		t.Fatalf("blocked by the switch: %v", err)
	}
	if err := r.block("a", false); err != nil || blocked() {
		t.Errorf("unblock against the switch's default: %v", err)
	}
	if err := r.block("nobody", true); err == nil || invalid(err) {
		t.Errorf("unknown port: %v", err)
	}
	move := api.Move{Port: "a", PortGroup: "other"}
	if err := r.command(func(ctx context.Context) error { _, err := r.commands.Move(ctx, move); return err }); !invalid(
		err) {
		t.Errorf("into a port group that forbids the override: %v", err)
	}
}

func TestS10_OverridesEndOnlyWithTheOwner(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("pa", "02:00:00:00:00:0a")
	r.settler.settle()
	if err := r.block("a", true); err != nil {
		t.Fatal(err)
	}
	if err := r.restart(base); err != nil || len(r.state.Overrides) != 1 {
		t.Fatalf("%v, overrides %v", err, r.state.Overrides)
	}
	delete(r.dev.byName, "pa")
	r.settler.settle()
	if len(r.saved().Overrides) != 0 || planned(r.kernel.last().Plan, "a").Policy.Blocked.V {
		t.Errorf("after the owner has gone: %v", r.saved().Overrides)
	}
}

func TestFileCountsWhenEditedAndTheLastApplyOtherwise(t *testing.T) {
	r := newRig(t, base)
	applied := strings.ReplaceAll(base, "100", "300")
	if err := r.apply(applied); err != nil {
		t.Fatal(err)
	}
	vlan := func() uint16 { return planned(r.kernel.last().Plan, "a").Policy.VLAN.V.ID }
	for _, c := range []struct {
		what, config string
		want         uint16
	}{
		{"restart", base, 300}, {"restart without a file", "", 300}, {"edited", strings.ReplaceAll(base, "100", "400"),
			400}, {"same again", strings.ReplaceAll(base, "100", "400"), 400},
	} {
		t.Run(c.what, func(t *testing.T) {
			if err := r.restart(c.config); err != nil || vlan() != c.want {
				t.Errorf("%s: VLAN %d, want %d (%v)", c.what, vlan(), c.want, err)
			}
		})
	}
}

func TestUplinkDeviceBelowTheSwitchMTUIsAFault(t *testing.T) {
	r := newRig(t, base)
	r.dev.nic("eno1", 1500)
	if err := r.apply(strings.Replace(base, "name: lab\n", "name: lab\n    mtu: 9000\n", 1)); !invalid(err) ||
		!strings.Contains(err.Error(), "next.yaml:5") {
		t.Errorf("apply: %v", err)
	}
}

func TestAgentStartsWithoutAConfigurationAndTakesOneLater(t *testing.T) {
	r := newRig(t, "")
	if err := r.connect(spec.Port{Name: "c", Switch: "lab", PortGroup: "web"}); !notFound(err) {
		t.Errorf("a port without a switch: %v", err)
	}
	if err := r.apply(base); err != nil || len(r.kernel.last().Plan.Switches) != 1 {
		t.Errorf("apply: %v", err)
	}
}

// A port whose port group went with the file is in the file's, and the misfit says how to forget the move.
func TestAMoveToAPortGroupThatIsGoneSaysHowToForgetIt(t *testing.T) {
	r := newRig(t, base)
	move := func(group string) error {
		return r.command(func(ctx context.Context) error {
			_, err := r.commands.Move(ctx, api.Move{Port: "a", PortGroup: group})
			return err
		})
	}
	if err := move("other"); err != nil {
		t.Fatal(err)
	}
	lacks := strings.Replace(base, "name: other", "name: third", 1)
	if err := r.apply(lacks); !invalid(err) || !strings.Contains(err.Error(), "heddle port move a --port-group web)") {
		t.Errorf("a file without the port group: %v", err)
	}
	if err := r.restart(lacks); err != nil {
		t.Fatal(err)
	}
	got := texts(r.ports.misfits)
	if a := planned(r.Active().Plan, "a"); a == nil || a.PortGroup != "web" || len(got) != 1 ||
		!strings.HasSuffix(got[0], "to forget the move: heddle port move a --port-group web)") {
		t.Fatalf("port %+v, misfits %q", a, got)
	}
	if err := move("web"); err != nil {
		t.Fatal(err)
	}
	if got := texts(r.ports.misfits); len(got) != 0 {
		t.Errorf("after the command that they name: %q", got)
	}
}

func TestOverrideThatNoLongerFitsAtStartLeavesThePortAsTheFileHasIt(t *testing.T) {
	r := newRig(t, base)
	if err := r.block("a", true); err != nil {
		t.Fatal(err)
	}
	if err := r.restart(strings.Replace(base, "{name: a, switch: lab, portGroup: web", "{name: a, switch: lab, "+
		"portGroup: other", 1)); err != nil {
		t.Fatal(err)
	}
	a := planned(r.Active().Plan, "a")
	if a == nil || a.Policy.Blocked.V || a.PortGroup != "other" || len(r.ports.misfits) != 1 {
		t.Errorf("port %+v, misfits %v", a, r.ports.misfits)
	}
	if names := []string{r.ports.cfg.Ports[0].Name, r.ports.cfg.Ports[1].Name}; names[0] != "a" || names[1] != "b" {
		t.Errorf("order of the file is lost: %v", names)
	}
}

func TestAPortMovesToAnotherSwitch(t *testing.T) {
	two := strings.Replace(base, "\nports:\n",
		"\n  - name: dmz\n    portGroups: [{name: inner}, {name: web}]\nports:\n", 1)
	r := newRig(t, two)
	r.dev.veth("pv", "02:00:00:00:00:0c")
	r.settler.settle()
	if err := r.connect(spec.Port{Name: "v", Switch: "lab", PortGroup: "web", Device: "pv"}); err != nil {
		t.Fatal(err)
	}
	move := func(port, sw, group string) (out *api.Applied, err error) {
		err = r.command(func(ctx context.Context) error {
			out, err = r.commands.Move(ctx, api.Move{Port: port, Switch: sw, PortGroup: group})
			return err
		})
		return out, err
	}
	was, now := plan.PortID{Switch: "lab", Name: "v"}, plan.PortID{Switch: "dmz", Name: "v"}
	mac := r.state.Of(was).MAC
	for _, row := range []struct{ port, sw, group, says string }{
		{"v", "none", "web", "switch none with port group web does not exist"},
		{"v", "dmz", "none", "switch dmz with port group none does not exist"},
		{"a", "dmz", "web", "port a is declared in"},
		{"nobody", "dmz", "", "nobody"},
	} {
		if _, err := move(row.port, row.sw, row.group); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s to %s/%s: %v, want %q", row.port, row.sw, row.group, err, row.says)
		}
	}
	if len(r.kernel.succeeded) != 0 || r.state.Of(was) == nil {
		t.Fatalf("refused moves changed something: %v", r.kernel.succeeded)
	}
	out, err := move("v", "dmz", "")
	if err != nil || len(out.Changes) != 1 || out.Changes[0].Field != "switch" {
		t.Fatalf("%+v, %v", out, err)
	}
	if h := r.state.Of(now); h == nil || h.MAC != mac || r.state.Of(was) != nil || len(r.saved().Released) != 0 ||
		r.kernel.succeeded[0] != [3]plan.PortID{now, was, {}} {
		t.Errorf("the device is not handed on as it is: held %+v, renamed %v", r.state.Held, r.kernel.succeeded)
	}
	if p := planned(r.kernel.last().Plan, "v"); p.ID != now || p.PortGroup != "web" {
		t.Errorf("in the plan: %+v", p)
	}
	n := len(r.kernel.applied)
	if out, err := move("v", "dmz", ""); err != nil || len(out.Changes) != 0 || len(r.kernel.applied) != n {
		t.Errorf("a second time: %+v, %v", out, err)
	}
	if out, err := move("v", "dmz", "inner"); err != nil || len(out.Changes) != 1 ||
		out.Changes[0].Field != "portGroup" {
		t.Errorf("to another port group of its switch: %+v, %v", out, err)
	}
	if err := r.restart(two); err != nil || planned(r.kernel.last().Plan, "v").ID != now {
		t.Errorf("after a restart: %v", err)
	}
}
