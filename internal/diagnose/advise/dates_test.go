package advise

import (
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/observe/sightings"
	"heddle/internal/plan"
)

// sees keeps the rig's counters in a ledger whose first reading is that long ago.
func (r *rig) sees(l *sightings.Ledger, ago time.Duration) {
	r.t.Helper()
	causes := CausesOf(r.Host.Plan, r.Host.Facts, r.links)
	l.Note(r.Now.Add(-ago), Readings(r.before, causes, r.Stats, r.Flows))
	r.before = causes
	r.Seen = l.Seen()
}

// forgery returns a rig whose port a sent one forged frame, which a ledger has seen that long ago.
func forgery(t *testing.T, ago time.Duration) (*rig, *sightings.Ledger) {
	r, l := newRig(t, sound), sightings.New()
	r.Since = api.AdviseSince
	r.sees(l, ago+time.Minute)
	r.dropped("a", "forged-transmit", 1)
	r.sees(l, ago)
	return r, l
}

func TestAFindingSaysWhenItWasSeen(t *testing.T) {
	r, l := forgery(t, 5*time.Minute)
	r.stats("a").Drops[0].Value = 4
	r.sees(l, time.Minute)
	f := r.found("forged-transmits")
	if len(f) != 1 || !f[0].FirstSeen.Equal(r.Now.Add(-5*time.Minute)) ||
		!f[0].LastSeen.Equal(r.Now.Add(-time.Minute)) || f[0].Now || f[0].Undated {
		t.Errorf("%+v", f)
	}
}

func TestWhatIsSoNowSaysThat(t *testing.T) {
	r := newRig(t, sound)
	r.view("b").State, r.view("b").Reason = api.Pending, "device pb does not exist"
	since := r.Now.Add(-2 * time.Second)
	r.Absent = map[plan.PortID]sightings.Absence{id("b"): {Since: since}}
	f := r.found("device-missing")
	if len(f) != 1 || !f[0].Now || !f[0].FirstSeen.Equal(since) || !f[0].LastSeen.Equal(r.Now) ||
		!strings.HasSuffix(f[0].Sign, "; for 2s") {
		t.Errorf("%+v", f)
	}
	r.Absent[id("b")] = sightings.Absence{Since: since, AtLeast: true}
	if f := r.found("device-missing"); !f[0].FirstSeen.IsZero() || !strings.HasSuffix(f[0].Sign, "; for 2s at least") {
		t.Errorf("it was missing before the agent looked: %+v", f)
	}
}

func TestOldFindingsAreCountedAndShownWhenAskedFor(t *testing.T) {
	r, _ := forgery(t, 11*time.Minute)
	a := Examine(r.Snapshot)
	if len(a.Findings) != 0 || a.Older != 1 || !a.Healthy() || a.SinceSeconds != 600 {
		t.Errorf("by default: %+v", a)
	}
	r.Since = time.Hour
	if a := Examine(r.Snapshot); len(a.Findings) != 1 || a.Older != 0 || a.Healthy() {
		t.Errorf("of the last hour: %+v", a)
	}
	r.Since, r.All = time.Second, true
	if a := Examine(r.Snapshot); len(a.Findings) != 1 || a.Older != 0 || a.Healthy() {
		t.Errorf("all: %+v", a)
	}
}

func TestWhatWasCountedBeforeTheLedgerBeganIsOld(t *testing.T) {
	r, l := newRig(t, sound), sightings.New()
	r.Since = api.AdviseSince
	r.dropped("a", "forged-transmit", 3)
	r.sees(l, 0)
	if a := Examine(r.Snapshot); len(a.Findings) != 0 || a.Older != 1 {
		t.Errorf("%+v", a)
	}
	r.All = true
	if f := r.found("forged-transmits"); len(f) != 1 || !f[0].Undated || !f[0].LastSeen.IsZero() {
		t.Errorf("%+v", f)
	}
}

// fix is a change of the configuration that ends the fault that a rule found.
type fix struct {
	rule     string
	provoke  func(*rig)
	old, new string
}

func fixes() []fix {
	drops := func(name, reason string) func(*rig) { return func(r *rig) { r.dropped(name, reason, 9) } }
	const kind = "kind: distributed"
	const web, trunk, learning = "{name: web, vlan: {access: 10}", `{trunk: ["0-4094"]}`, "enabled: true, limit: 20"
	return []fix{
		{"forged-transmits", drops("a", "forged-transmit"), web, web + ", security: {forgedTransmits: accept}"},
		{"guest-tags", drops("a", "guest-tagged"), web, `{name: web, vlan: {trunk: ["0-20"]}`},
		{"guest-tags", drops("s", "vlan-not-allowed"), trunk, `{trunk: ["0-4000"]}`},
		{"guest-bpdu", drops("a", "guest-bpdu"), kind,
			kind + "\n  checks: {blockGuestBPDU: false}"},
		{"guest-link-control", drops("a", "guest-link-control"), web, web + ", security: {guestLinkControl: [lldp]}"},
		{"guest-dhcp-server", drops("a", "guest-dhcp-server"), web, web + ", security: {dhcpServer: reject}"},
		{"mac-limit", func(r *rig) { r.count("n", macsLearned, 20); r.dropped("n", "mac-limit", 2) }, learning,
			"enabled: true, limit: 40"},
		{"mac-limit", func(r *rig) {
			r.count("n", macsLearned, 20)
			r.stats("n").Extra = append(r.stats("n").Extra, api.Counter{Name: unlearned, Value: 2})
		}, learning, "enabled: true, limit: 40"},
		{"mtu", func(r *rig) { r.dropped("a", "mtu-exceeded", 1) }, kind, kind + "\n  mtu: 9000"},
		{"address-guard", drops("a", "ip-source-not-allowed"), `"02:00:00:00:00:0a"`,
			`"02:00:00:00:00:0a", security: {addressGuard: {addresses: [192.0.2.10]}}`},
	}
}

// TestAFindingIsGoneWhenItsCauseIsFixed, although the counters stay as they are.
func TestAFindingIsGoneWhenItsCauseIsFixed(t *testing.T) {
	for _, c := range fixes() {
		t.Run(c.rule, func(t *testing.T) {
			r, l := newRig(t, sound), sightings.New()
			r.Since, r.All = api.AdviseSince, true
			r.sees(l, time.Minute)
			c.provoke(r)
			r.sees(l, 30*time.Second)
			if len(r.found(c.rule)) == 0 {
				t.Fatal("not found at all")
			}
			if !strings.Contains(sound, c.old) {
				t.Fatalf("no %q", c.old)
			}
			fixed := newRig(t, strings.Replace(sound, c.old, c.new, 1))
			fixed.Since, fixed.All, fixed.Stats = api.AdviseSince, true, r.Stats
			fixed.sees(l, 0)
			if f := fixed.found(c.rule); len(f) > 0 {
				t.Errorf("still there: %+v", f)
			}
			if a := Examine(fixed.Snapshot); a.Older != 0 {
				t.Errorf("%d of the past", a.Older)
			}
		})
	}
}

func TestAFaultThatGoesOnAfterAChangeIsFoundAnew(t *testing.T) {
	r, l := forgery(t, 2*time.Minute)
	changed := newRig(t, strings.Replace(sound, "{name: web, vlan: {access: 10}",
		"{name: web, vlan: {access: 10}, security: {forgedTransmits: accept}", 1))
	changed.Stats = r.Stats
	changed.sees(l, time.Minute)
	r.sees(l, time.Minute) // and up again
	r.stats("a").Drops[0].Value = 3
	r.sees(l, 0)
	f := r.found("forged-transmits")
	if len(f) != 1 || !f[0].FirstSeen.Equal(r.Now) ||
		!strings.Contains(f[0].Sign, "2 frames from addresses that are not the port's were dropped since its settings "+
			"changed 1m0s ago") {
		t.Errorf("%+v", f)
	}
}

func TestALimitThatHasRoomAgainIsNoFinding(t *testing.T) {
	r := newRig(t, sound)
	r.dropped("n", "mac-limit", 12)
	r.count("n", macsLearned, 5)
	if f := r.found("mac-limit"); len(f) > 0 {
		t.Errorf("5 of 20: %+v", f)
	}
	r.lately("n", nil, api.ReasonNo{Reason: "mac-limit", Value: 1})
	if f := r.found("mac-limit"); len(f) != 1 {
		t.Errorf("5 of 20, and dropped just now: %+v", f)
	}
}

// TestAnUplinkWithoutAVLANStaysANote: the fault is in the configuration, even while no frame meets it.
func TestAnUplinkWithoutAVLANStaysANote(t *testing.T) {
	text := strings.Replace(sound, "{name: u2, device: eno2}", `{name: u2, device: eno2, vlans: ["20"]}`, 1)
	r, l := newRig(t, text), sightings.New()
	r.Since = api.AdviseSince
	r.sees(l, 2*time.Hour)
	r.refused("u2", "uplink-vlan", 5)
	r.sees(l, time.Hour)
	f := r.found("uplink-vlan")
	if len(f) == 0 || f[0].Level != api.FindingNote || !f[0].Now {
		t.Errorf("%+v", f)
	}
}

// TestCauses_ChangeWithWhatDecides, and not with other settings.
func TestCauses_ChangeWithWhatDecides(t *testing.T) {
	before := newRig(t, sound)
	was := CausesOf(before.Host.Plan, before.Host.Facts, nil)
	r := newRig(t, strings.Replace(sound, "{name: web, vlan: {access: 10}",
		"{name: web, vlan: {access: 10}, security: {forgedTransmits: accept}", 1))
	r.fact("b", func(f *plan.Fact) { f.MTU = 9000 })
	now := CausesOf(r.Host.Plan, r.Host.Facts, r.links)
	for _, c := range []struct {
		port, reason string
		changed      bool
	}{{"a", "forged-transmit", true}, {"a", "guest-tagged", false}, {"n", "forged-transmit", false},
		{"b", "mtu-exceeded", true}, {"a", "mtu-exceeded", false}, {"u1", "uplink-vlan", false},
		{"gone", "mtu-exceeded", false}} {
		t.Run(c.port+" "+c.reason, func(t *testing.T) {
			first := now(id(c.port), c.reason)
			if (was(id(c.port), c.reason) != first) != c.changed || now(id(c.port), c.reason) != first {
				t.Errorf("changed: %v", !c.changed)
			}
		})
	}
}

// Frames that a device did not send until its link went down or came up again are no fault of the device; frames that
// it did not send after that, and frames lost on receiving, are.
func TestDeviceLosses_NotThoseOfALinkThatWentDown(t *testing.T) {
	for _, c := range []struct {
		what string
		// before, down and after are the device's counters before the link goes down, while it is down, and after it is
		// up again.
		before, down, after api.DeviceLosses
		want                string // of the finding in the end; "" is none
		whileDown           string
	}{
		{what: "not sent while the link is lost", down: api.DeviceLosses{TxDropped: 9, TxErrors: 1}},
		{what: "errors receiving", down: api.DeviceLosses{TxDropped: 9, RxErrors: 2},
			want:      "2 errors receiving and 0 errors sending, 0 frames missed, and 0 frames not sent",
			whileDown: "2 errors"},
		{what: "again with the link up", down: api.DeviceLosses{TxDropped: 9}, after: api.DeviceLosses{TxDropped: 3},
			want: "and 3 frames not sent, since it was made (not sent: since its link changed)"},
		{what: "before", before: api.DeviceLosses{TxDropped: 5}, down: api.DeviceLosses{TxDropped: 4}},
	} {
		t.Run(c.what, func(t *testing.T) {
			r, l := newRig(t, sound), sightings.New()
			r.Since, r.links = api.AdviseSince, Links{id("u1"): 1}
			d := &api.DeviceLosses{Device: "eno1"}
			r.stats("u1").Device = d
			add := func(more api.DeviceLosses, ago time.Duration) {
				d.TxDropped, d.TxErrors = d.TxDropped+more.TxDropped, d.TxErrors+more.TxErrors
				d.RxErrors, d.RxMissed = d.RxErrors+more.RxErrors, d.RxMissed+more.RxMissed
				r.sees(l, ago)
			}
			add(api.DeviceLosses{}, 5*time.Minute)
			add(c.before, 4*time.Minute)
			if f := r.found("device-losses"); (len(f) > 0) != (c.before.TxDropped > 0) {
				t.Errorf("before the link goes down: %+v", f)
			}
			r.fact("u1", func(f *plan.Fact) { f.Up = false })
			r.links = Links{id("u1"): 2}
			add(c.down, 3*time.Minute)
			if f := r.found("device-losses"); !told(f, c.whileDown) {
				t.Errorf("while it is down: %+v", f)
			}
			r.fact("u1", func(f *plan.Fact) { f.Up = true })
			r.sees(l, 2*time.Minute)
			add(c.after, time.Minute)
			if f := r.found("device-losses"); !told(f, c.want) {
				t.Errorf("in the end: %+v", f)
			}
		})
	}
}

// told reports whether there is a finding with that text in its sign; with "" whether there is none.
func told(found []api.Finding, sign string) bool {
	if sign == "" {
		return len(found) == 0
	}
	return len(found) == 1 && strings.Contains(found[0].Sign, sign)
}

// The link was lost and came up again between two readings: the kernel's count of losses shows it.
func TestDeviceLosses_NotThoseOfALinkThatWasLostForAMoment(t *testing.T) {
	r, l := newRig(t, sound), sightings.New()
	r.Since = api.AdviseSince
	r.stats("u1").Device = &api.DeviceLosses{Device: "eno1"}
	r.sees(l, 2*time.Minute)
	r.stats("u1").Device.TxDropped = 7
	r.links = Links{id("u1"): 1}
	r.sees(l, time.Minute)
	if f := r.found("device-losses"); len(f) > 0 {
		t.Errorf("%+v", f)
	}
}

// With --for, the events of that time show whether the link changed.
func TestDeviceLosses_InATimeInWhichTheLinkChanged(t *testing.T) {
	r := newRig(t, sound)
	r.Window = 5 * time.Second
	r.stats("u1").Device = &api.DeviceLosses{Device: "eno1", TxDropped: 7}
	if f := r.found("device-losses"); !told(f, "7 frames not sent, in the last 5s") {
		t.Fatalf("without a change: %+v", f)
	}
	r.Events = []event.Event{{Kind: event.Link, Switch: "lab", Uplink: "u1", To: "down",
		Time: r.Now.Add(-time.Minute)}}
	if f := r.found("device-losses"); len(f) == 0 {
		t.Error("a change before that time explains nothing")
	}
	r.Events[0].Time = r.Now.Add(-time.Second)
	if f := r.found("device-losses"); len(f) > 0 {
		t.Errorf("%+v", f)
	}
}
