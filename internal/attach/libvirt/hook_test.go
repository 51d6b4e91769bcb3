package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/plan/problem"
)

// fakeAgent has a switch "lab" with the port groups web and db.
type fakeAgent struct {
	ports []api.Port
	did   []string
	down  error
	fail  error // of the second port of a domain
}

func (f *fakeAgent) State(context.Context) (*api.State, error) {
	return &api.State{Switches: []api.Switch{{Name: "lab"}}, PortGroups: []api.PortGroup{{Switch: "lab", Name: "web"},
		{Switch: "lab", Name: "db"}}, Ports: slices.Clone(f.ports)}, f.down
}

func (f *fakeAgent) Reconnect(_ context.Context, q api.Connect) (*api.Applied, error) {
	p := q.Port
	if f.down != nil {
		return nil, f.down
	}
	if f.fail != nil && strings.HasSuffix(p.Name, "/net1") {
		return nil, f.fail
	}
	f.did = append(f.did, "+"+p.Name)
	f.ports = slices.DeleteFunc(f.ports, func(o api.Port) bool { return o.Name == p.Name })
	f.ports = append(f.ports, api.Port{Name: p.Name, Device: p.Device, Origin: api.FromRun, VM: q.VM})
	return &api.Applied{}, nil
}

func (f *fakeAgent) Expect(_ context.Context, q api.Expect) error {
	f.did = append(f.did, strings.TrimSpace(fmt.Sprintf("expect %s %s", q.Guest, strings.Join(q.Needs, ","))))
	if q.Force {
		f.did = append(f.did, "force")
	}
	return f.down
}

func (f *fakeAgent) Disconnect(_ context.Context, q api.Disconnect) error {
	f.did = append(f.did, "-"+q.Port)
	f.ports = slices.DeleteFunc(f.ports, func(p api.Port) bool { return p.Name == q.Port })
	return nil
}

func (f *fakeAgent) run(operation, xml string, open bool) (warned string, err error) {
	f.did = nil
	release := func(device string) error { f.did = append(f.did, "out "+device); return nil }
	h := Hook{Agent: f, Release: release, FailOpen: open, Warn: func(format string, a ...any) {
		warned += fmt.Sprintf(format, a...) + "\n"
	}}
	err = h.Run(context.Background(), operation, strings.NewReader(xml))
	return warned, err
}

var (
	both  = ports(`<heddle:port portGroup="web"/>`)
	wrong = ports(`<heddle:port portGroup="wbe"/>`)
)

func TestLifeOfADomain(t *testing.T) {
	f := &fakeAgent{ports: []api.Port{{Name: "vm1/old", Device: "vnet9", VM: runningUUID, Origin: api.FromRun},
		{Name: "vm1/declared", Origin: api.FromFile}, {Name: "vm2/net0", Device: "vnet8", Origin: api.FromRun}}}
	for _, step := range []struct {
		operation string
		did       []string
	}{
		{"prepare", nil},
		{"start", []string{"-vm1/old", "+vm1/net0", "+vm1/net1"}},
		{"started", nil},
		{"reconnect", []string{"+vm1/net0", "+vm1/net1"}},
		{"stopped", []string{"-vm1/net0", "-vm1/net1"}},
		{"release", nil},
		{"what is to come", nil},
	} {
		t.Run(step.operation, func(t *testing.T) {
			warned, err := f.run(step.operation, running("vm1", both), false)
			if d := cmp.Diff(step.did, f.did); err != nil || warned != "" || d != "" {
				t.Errorf("%s: %v %q\n%s", step.operation, err, warned, d)
			}
		})
	}
	if len(f.ports) != 2 {
		t.Errorf("left: %+v", f.ports)
	}
}

// TestS99_ADomainThatArrivesIsExpected: libvirt announces that a domain will arrive by migration, and then starts it as
// any other.
func TestS99_ADomainThatArrivesIsExpected(t *testing.T) {
	f := &fakeAgent{}
	for _, step := range []struct {
		operation string
		did       []string
	}{
		{"migrate", []string{"expect vm1"}},
		{"prepare", nil},
		{"start", []string{"+vm1/net0", "+vm1/net1"}},
		{"restore", nil},
	} {
		t.Run(step.operation, func(t *testing.T) {
			if _, err := f.run(step.operation, running("vm1", both), false); err != nil ||
				!slices.Equal(step.did, f.did) {
				t.Errorf("%s: %v, did %q", step.operation, err, f.did)
			}
		})
	}
	needs := ports(`<heddle:port portGroup="web"/><heddle:needs name="storage"/><heddle:needs name="lab/db"/>`)
	forces := func(value string) string {
		return strings.Replace(needs, "<heddle:ports ", "<heddle:ports force='"+value+"' ", 1)
	}
	for xml, want := range map[string][]string{
		needs:         {"expect vm1 storage,lab/db"},
		forces("yes"): {"expect vm1 storage,lab/db", "force"},
		forces("no"):  {"expect vm1 storage,lab/db"},
	} {
		if _, err := f.run("migrate", running("vm1", xml), false); err != nil || !slices.Equal(want, f.did) {
			t.Errorf("%v, did %q, want %q", err, f.did, want)
		}
	}
	if _, err := f.run("migrate", running("vm1", wrong), false); err == nil || len(f.did) != 0 {
		t.Errorf("a port group that is not here: %v, did %q", err, f.did)
	}
}

func TestTheTapOfANetworkLeavesItsBridgeBeforeItIsConnected(t *testing.T) {
	f, xml := &fakeAgent{}, onNetwork("", "network='heddle-lab' portgroup='web'", "network='default'")
	for _, step := range []struct {
		operation string
		did       []string
	}{
		{"prepare", nil},
		{"start", []string{"out vnet0", "+vm1/net0"}},
		{"reconnect", []string{"out vnet0", "+vm1/net0"}}, // libvirtd puts it back when it starts
		{"stopped", []string{"-vm1/net0"}},
	} {
		t.Run(step.operation, func(t *testing.T) {
			warned, err := f.run(step.operation, xml, false)
			if d := cmp.Diff(step.did, f.did); err != nil || warned != "" || d != "" {
				t.Errorf("%s: %v %q\n%s", step.operation, err, warned, d)
			}
		})
	}
	if _, err := f.run("prepare", strings.Replace(xml, "'web'", "'wbe'", 1), false); err == nil ||
		!strings.Contains(err.Error(), "switch lab has no port group wbe") {
		t.Errorf("an unknown port group: %v", err)
	}
	f.down = errors.New("no agent")
	if warned, err := f.run("start", xml, true); err != nil || !strings.Contains(warned, "started without its ports") ||
		!slices.Equal(f.did, []string{"out vnet0"}) {
		t.Errorf("open without an agent: %v %q %v", err, warned, f.did)
	}
}

func TestReconnectKeepsWhatWasPluggedByHand(t *testing.T) {
	f := &fakeAgent{ports: []api.Port{{Name: "vm1/plugged", Device: "vnet2", Origin: api.FromRun},
		{Name: "vm1/unplugged", Device: "vnet3", Origin: api.FromRun, ReasonCode: problem.DeviceMissing}}}
	_, err := f.run("attach", running("vm1", both), false)
	if d := cmp.Diff([]string{"-vm1/unplugged", "+vm1/net0", "+vm1/net1"}, f.did); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

func TestWhatDoesNotFitIsRefusedBeforeAnythingRuns(t *testing.T) {
	for _, operation := range []string{"prepare", "migrate", "restore"} {
		f := &fakeAgent{}
		if _, err := f.run(operation, running("vm1", wrong), true); err == nil ||
			!strings.Contains(err.Error(), "switch lab has no port group wbe; did you mean web?") {
			t.Errorf("%s: %v", operation, err)
		}
		if _, err := f.run(operation, running("vm1", ports(`<heddle:port portGroup="web" switch="x"/>`)),
			false); err == nil || !strings.Contains(err.Error(), "no switch x") {
			t.Errorf("%s: %v", operation, err)
		}
	}
	f := &fakeAgent{fail: api.NewError(api.Invalid, "one", "two")}
	if _, err := f.run("start", running("vm1", both), false); err == nil || err.Error() != "start refused: one; two" ||
		len(f.ports) != 0 {
		t.Errorf("half of a domain's ports: %v, left %+v", err, f.ports)
	}
	for _, operation := range []string{"reconnect", "attach"} {
		f := &fakeAgent{fail: api.NewError(api.Invalid, "one")}
		if warned, err := f.run(operation, running("vm1", both), false); err != nil ||
			!strings.Contains(warned, "one") || len(f.ports) != 1 {
			t.Errorf("%s of a running domain: %v %q, ports %+v", operation, err, warned, f.ports)
		}
	}
	for _, operation := range []string{"reconnect", "stopped", "release"} {
		if warned, err := f.run(operation, "<nonsense", false); err != nil || warned == "" {
			t.Errorf("%s with unreadable XML: %v %q", operation, err, warned)
		}
	}
}

func TestWithoutAnAgent(t *testing.T) {
	for _, c := range []struct {
		operation, wants string
		open             bool
		refused, warned  bool
	}{
		{"prepare", both, false, true, false},
		{"start", both, false, true, false},
		{"prepare", both, true, false, true},
		{"start", both, true, false, true},
		{"reconnect", both, false, false, true},
		{"stopped", both, false, false, true},
		{"prepare", "", false, false, false},
		{"start", "", false, false, false},
		{"stopped", "", false, false, false},
		{"start", ports(`<heddle:port/>`), true, true, false},
	} {
		t.Run(c.operation, func(t *testing.T) {
			f := &fakeAgent{down: fmt.Errorf("%w here", api.ErrNoAgent)}
			warned, err := f.run(c.operation, running("vm1", c.wants), c.open)
			if (err != nil) != c.refused || (warned != "") != c.warned || strings.Count(warned, "\n") > 1 {
				t.Errorf("%s, metadata %q, open %v: %v %q", c.operation, c.wants, c.open, err, warned)
			}
		})
	}
}
