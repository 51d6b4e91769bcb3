package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

const learningBase = `
switches:
  - name: lab
    uplinks: [{name: u1, device: eno1}]
    portGroups:
      - {name: web, security: {macLearning: {enabled: true, limit: 2}, forgedTransmits: accept}}
ports:
  - {name: a, switch: lab, portGroup: web, device: pa, mac: "02:00:00:00:00:0a"}
`

// refusedAt returns the refusals that are shown for a port.
func (r *rig) refusedAt(port string) []api.Refusal {
	r.t.Helper()
	for _, p := range r.answers.view().Ports {
		if p.Name == port {
			return p.Refused
		}
	}
	r.t.Fatalf("no port %s", port)
	return nil
}

// counted returns a reading of a port's counters.
func counted(delivered, dropped, allowed uint64) []api.Stats {
	return []api.Stats{{Switch: "lab", Name: "other"}, {Switch: "lab", Name: "a",
		Drops: api.ReasonCounts{{Reason: "forged-transmit", Value: dropped}},
		Extra: api.Counters{{Name: "delivered", Value: delivered}, {Name: "macNotLearnedAllowed", Value: allowed}}}}
}

// A refusal is past when the guest's frames were accepted for a while and none was refused, by the counters.
func TestARefusalIsPastWhenFramesAreAcceptedAndNoneIsRefused(t *testing.T) {
	type reading struct {
		after              time.Duration
		delivered, dropped uint64
	}
	for _, row := range []struct {
		name     string
		readings []reading
		past     bool
	}{
		{"no reading yet", nil, false},
		{"one reading", []reading{{1, 5, 3}}, false},
		{"accepted since", []reading{{1, 5, 3}, {61, 6, 3}}, true},
		{"accepted, too short a time", []reading{{1, 5, 3}, {40, 6, 3}}, false},
		{"nothing accepted since", []reading{{1, 5, 3}, {61, 5, 3}, {121, 5, 3}}, false},
		{"both", []reading{{1, 5, 3}, {61, 9, 4}, {121, 12, 5}}, false},
		{"it came back", []reading{{1, 5, 3}, {61, 9, 3}, {121, 12, 4}}, false},
		{"and went", []reading{{1, 5, 3}, {61, 9, 4}, {121, 12, 4}}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, base)
			r.dev.veth("pa", "02:00:00:00:00:0a")
			if err := r.reconciler.reconcile(); err != nil {
				t.Fatal(err)
			}
			at := time.Unix(1000, 0)
			r.reporter.refused.Note(dataplane.Told{At: at, Kind: abi.TellRefused, Port: id("a"),
				Reason: abi.ReasonForgedTransmit, MAC: plan.MAC{2, 9}})
			for _, v := range row.readings {
				r.reporter.refused.Settle(at.Add(v.after*time.Second), counted(v.delivered, v.dropped, 0))
			}
			want := []api.Refusal{{Reason: "forged-transmit", MAC: "02:09:00:00:00:00", Time: at, Past: row.past}}
			if d := cmp.Diff(want, r.refusedAt("a")); d != "" {
				t.Error(d)
			}
		})
	}
}

// The settings that refused a frame are changed: earlier refusals tell nothing about the new settings.
func TestARefusalIsPastWhenItsSettingsChange(t *testing.T) {
	for _, row := range []struct {
		from, to string
		past     bool
	}{
		{"{name: web, vlan: {access: 100}}", "{name: web, vlan: {access: 100}, security: {forgedTransmits: accept}}",
			true},
		{"{name: web, vlan: {access: 100}}", "{name: web, vlan: {access: 100}, security: {promiscuous: accept}}",
			false},
	} {
		t.Run(row.to, func(t *testing.T) {
			r := newRig(t, base)
			r.dev.veth("pa", "02:00:00:00:00:0a")
			if err := r.reconciler.reconcile(); err != nil {
				t.Fatal(err)
			}
			told := dataplane.Told{At: time.Unix(1000, 0), Kind: abi.TellRefused, Port: id("a"),
				Reason: abi.ReasonForgedTransmit}
			r.reporter.refused.Note(told)
			if err := r.apply(strings.Replace(base, row.from, row.to, 1)); err != nil {
				t.Fatal(err)
			}
			if got := r.refusedAt("a"); len(got) != 1 || got[0].Past != row.past {
				t.Errorf("%+v", got)
			}
			r.reporter.refused.Note(told) // the new settings refuse the frame, too
			if got := r.refusedAt("a"); len(got) != 1 || got[0].Past {
				t.Errorf("again: %+v", got)
			}
		})
	}
}

// A port that can learn no more MACs shows it, whether frames from unknown MACs are dropped or pass.
func TestAMACLimitIsShownAtItsPort(t *testing.T) {
	for _, row := range []struct {
		policy string
		passed bool
		last   []api.Stats // a minute later
		past   bool
	}{
		{"drop", false, []api.Stats{}, false},
		{"allow", true, []api.Stats{}, false},
		{"allow", true, counted(9, 0, 7), true},
		{"allow", true, counted(9, 0, 8), false},
	} {
		t.Run(row.policy, func(t *testing.T) {
			r := newRig(t, strings.Replace(learningBase, "limit: 2", "limit: 2, limitPolicy: "+row.policy, 1))
			r.dev.veth("pa", "02:00:00:00:00:0a")
			if err := r.reconciler.reconcile(); err != nil {
				t.Fatal(err)
			}
			at := time.Unix(1000, 0)
			r.reporter.refused.Note(dataplane.Told{At: at, Kind: abi.TellLimit, Port: id("a"),
				Reason: abi.ReasonMACLimit, MAC: plan.MAC{2, 9}})
			r.reporter.refused.Settle(at.Add(time.Second), counted(5, 0, 7))
			r.reporter.refused.Settle(at.Add(time.Minute), row.last)
			want := []api.Refusal{{Reason: "mac-limit", MAC: "02:09:00:00:00:00", Time: at, Passed: row.passed,
				Past: row.past}}
			if d := cmp.Diff(want, r.refusedAt("a")); d != "" {
				t.Error(d)
			}
			larger := strings.Replace(learningBase, "limit: 2", "limit: 3, limitPolicy: "+row.policy, 1)
			if err := r.apply(larger); err != nil {
				t.Fatal(err)
			}
			if got := r.refusedAt("a"); len(got) != 1 || !got[0].Past {
				t.Errorf("with a higher limit: %+v", got)
			}
		})
	}
}

// A port that is up while none of its uplinks can be used shows that; a port whose teaming names no uplink does not.
func TestAPortWithoutAUsableUplinkSaysSo(t *testing.T) {
	for _, row := range []struct {
		name, config string
		up           bool
		code         problem.Code
		reason       string
	}{
		{"its uplink is up", base, true, "", ""},
		{"its uplink is down", base, false, problem.NoUplink,
			"none of the uplinks that its teaming names can be used: u1"},
		{"its tunnel has no endpoint", strings.NewReplacer("    portGroups:", "    tunnel: {endpoints: "+
			"[{device: eth7}]}\n    portGroups:", "{name: web,", "{name: web, overlay: {vni: 5000},").
			Replace(base), true, problem.NoUplink,
			"the tunnel of its overlay segment can't be used: heddle uplink show tunnel says why"},
		{"it has none", strings.Replace(base, "    uplinks: [{name: u1, device: eno1}]\n", "", 1), false, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := &rig{t: t, dev: newFakeDevices(), kernel: &fakeKernel{}, dir: t.TempDir()}
			r.dev.veth("pa", "02:00:00:00:00:0a")
			nic := r.dev.nic("eno1", 1500)
			nic.AdminUp, nic.Carrier = true, row.up
			if err := r.restart(row.config); err != nil {
				t.Fatal(err)
			}
			p := r.answers.view().Ports[0]
			if u := r.answers.view().Uplinks; len(u) > 0 && !row.up && (u[0].ReasonCode != problem.LinkDown ||
				u[0].Reason != "its device is down or has no carrier") {
				t.Errorf("the uplink: %q, %s", u[0].Reason, u[0].ReasonCode)
			}
			if p.State != api.Up || p.ReasonCode != row.code || p.Reason != row.reason {
				t.Errorf("state %s, code %q, reason %q, uplinks %v", p.State, p.ReasonCode, p.Reason, p.Uplinks)
			}
		})
	}
}
