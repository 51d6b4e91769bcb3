package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/agent/presence"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/host/guest"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

const (
	stopEvent    = `{"event": "STOP", "timestamp": {"seconds": 1, "microseconds": 0}}`
	resumeEvent  = `{"event": "RESUME", "timestamp": {"seconds": 2, "microseconds": 0}}`
	startedEvent = `{"event": "MIGRATION", "data": {"status": "active"}}`
)

func (r *rig) wait(port string) state.Wait {
	if w := r.state.WaitOf(id(port)); w != nil {
		return *w
	}
	return state.Wait{}
}

// shownWait returns a port's wait as the command line shows it.
func (r *rig) shownWait(port string) *api.Wait {
	all := r.answers.view().Ports
	return all[slices.IndexFunc(all, func(p api.Port) bool { return p.Name == port })].Wait
}

func (r *rig) connectIncoming(p spec.Port) error {
	return r.command(func(ctx context.Context) error {
		_, err := r.commands.ConnectIncoming(ctx, api.Incoming{Connect: api.Connect{Port: p}})
		return err
	})
}

// speaks reports whether anything would be announced for the port.
func (r *rig) speaks(port string) bool { return r.teaming.formed().Of(id(port)).Up }

func TestS99_AQEMUThatWaitsKeepsItsPortSilent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "qmp")
	q := newFakeQEMU(t, path, nicFilter("52:54:00:00:00:01", false))
	q.says("inmigrate")
	r := monitoredPort(t, path)
	if !r.fact("vm").Waits() || r.speaks("vm") { // before QEMU has said anything
		t.Fatalf("a port whose QEMU has not answered: %+v, spoken for %v", r.fact("vm"), r.speaks("vm"))
	}
	r.until("waiting", func() bool { return r.wait("vm").Why == observe.WaitQEMUWaits && !r.wait("vm").Doubt })
	if f := r.fact("vm"); !f.Waits() || r.speaks("vm") || f.Wait != r.wait("vm").Number {
		t.Errorf("%+v", f)
	}
	// The program saw the guest's first frame; the monitor is late and still reports that the guest waits.
	r.kernel.awake = map[plan.PortID]uint32{id("vm"): r.wait("vm").Number}
	r.waiting.Watch()
	r.until("awake", func() bool { return r.wait("vm").Awake && !r.fact("vm").Waits() && r.speaks("vm") })
	q.becomes(nicFilter("52:54:00:00:00:01", true))
	r.until("seen", func() bool { return r.fact("vm").Promiscuous == plan.AsksYes })
	if !r.wait("vm").Awake {
		t.Error("a late monitor has the port wait again")
	}
	if len(r.told(event.Waiting)) != 1 || len(r.told(event.Awake)) != 1 {
		t.Errorf("events %+v %+v", r.told(event.Waiting), r.told(event.Awake))
	}
}

// A QEMU that was started with -S, as for the backup of a VM that is off, takes nothing from its twin that runs. It
// waits for no move, and may stay so for as long as it likes.
func TestS152_AQEMUThatHasNotStartedItsGuestKeepsItsPortSilent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "qmp")
	q := newFakeQEMU(t, path, nicFilter("52:54:00:00:00:01", false))
	q.says("prelaunch")
	r := monitoredPort(t, path)
	r.until("waiting", func() bool { return r.wait("vm").Why == observe.WaitQEMUStarts && !r.wait("vm").Doubt })
	w := r.wait("vm")
	if f := r.fact("vm"); !f.Waits() || r.speaks("vm") || w.Overdue(time.Now().Add(time.Hour)) ||
		w.Problem().Code != problem.GuestUnsure {
		t.Errorf("%+v, spoken for %v, %+v", f, r.speaks("vm"), w.Problem())
	}
	q.says("running", resumeEvent)
	r.until("it runs", func() bool { return r.wait("vm").Awake && !r.fact("vm").Waits() && r.speaks("vm") })
}

func TestS99_TheSourceIsSilentFromItsStopUntilItResumes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "qmp")
	q := newFakeQEMU(t, path, nicFilter("52:54:00:00:00:01", false))
	q.says("running")
	r := monitoredPort(t, path)
	r.until("running", func() bool { return r.wait("vm").Awake && !r.fact("vm").Waits() })

	// Paused by its user, the guest keeps its port.
	q.says("paused", stopEvent)
	q.becomes(nicFilter("52:54:00:00:00:01", true))
	r.until("seen", func() bool { return r.fact("vm").Promiscuous == plan.AsksYes })
	if r.fact("vm").Waits() {
		t.Error("a paused guest lost its port")
	}
	q.says("running", resumeEvent)

	// The STOP event of a migration suffices. A query at that time is answered when the last part is sent, with this
	// status.
	q.says("finish-migrate", startedEvent, stopEvent)
	r.until("silent", func() bool {
		return r.wait("vm").Left && !r.wait("vm").Awake && r.fact("vm").Waits() && !r.speaks("vm")
	})
	first := r.wait("vm").Number
	q.says("running", resumeEvent) // it failed
	r.until("there again", func() bool { return r.wait("vm").Awake && !r.fact("vm").Waits() && r.speaks("vm") })
	if r.kernel.awake[id("vm")] != first {
		t.Errorf("the program was not told that wait %d is over: %v", first, r.kernel.awake)
	}
	// Without a migration event, QEMU's status shows the migration.
	q.says("postmigrate", stopEvent)
	r.until("silent again", func() bool { w := r.wait("vm"); return w.Left && !w.Awake && w.Number > first })
}

// The last frame of a guest reaches the program after its port was silenced. Its QEMU, which says what it said before,
// is asked anew: the port is silent again, and its generation is that of before. A guest that really is back keeps its
// port.
func TestS99_S100_AFrameThatWasUnderWayBringsNoGuestBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "qmp")
	q := newFakeQEMU(t, path, nicFilter("52:54:00:00:00:01", false))
	q.says("running")
	r := monitoredPort(t, path)
	r.until("running", func() bool { return r.wait("vm").Awake && !r.fact("vm").Waits() })
	q.says("finish-migrate", startedEvent, stopEvent)
	silent := func() bool {
		w := r.wait("vm")
		return w.Left && !w.Awake && r.fact("vm").Waits() && !r.speaks("vm")
	}
	r.until("silent", silent)
	frame := func() {
		r.kernel.awake = map[plan.PortID]uint32{id("vm"): r.wait("vm").Number}
		r.waiting.ToldAwake(dataplane.Told{Port: id("vm"), Wait: r.wait("vm").Number})
	}
	first := r.wait("vm").Number
	frame()
	if w := r.wait("vm"); !w.Unsure() {
		t.Fatalf("after the frame: %+v", w)
	}
	r.until("silent again", func() bool { return silent() && r.wait("vm").Number > first })
	q.says("running") // its event RESUME comes later than the frame
	frame()
	r.until("it runs here", func() bool { w := r.wait("vm"); return w.Awake && !w.Doubt && r.speaks("vm") })
}

func TestS99_AWaitOutlivesTheAgent(t *testing.T) {
	r := newRig(t, base)
	r.dev.tap("tap0")
	vm := spec.Port{Name: "vm", PortGroup: "web", Device: "tap0", MAC: "52:54:00:00:00:01"}
	if err := r.connectIncoming(vm); err != nil {
		t.Fatal(err)
	}
	if err := r.restart(base); err != nil {
		t.Fatal(err)
	}
	if !r.fact("vm").Waits() {
		t.Fatalf("%+v", r.fact("vm"))
	}
	if err := r.connectIncoming(vm); err != nil || r.wait("vm").Number != 1 {
		t.Errorf("a hook that runs twice begins another wait: %v %+v", err, r.wait("vm"))
	}
	if w := r.shownWait("vm"); w == nil || w.Overdue || len(r.told(event.Overdue)) != 0 {
		t.Errorf("overdue at once: %+v %+v", w, r.told(event.Overdue))
	}
	r.state.Waits[0].Since = time.Now().Add(-time.Minute)
	for range 2 { // it is reported once
		r.waiting.Watch()
	}
	r.until("shown as a problem", func() bool {
		return r.Active().Problems[id("vm")].Code == problem.GuestOverdue &&
			strings.Contains(r.Active().Problems[id("vm")].Text(), "heddle port activate")
	})
	if told := r.told(event.Overdue); len(told) != 1 || told[0].Port != "vm" ||
		!strings.Contains(told[0].Text, "its guest is to arrive by a migration: who connected it says so; nothing "+
			"has come from it for 1m0s") {
		t.Errorf("events %+v", told)
	}
	if w := r.shownWait("vm"); w == nil || !w.Overdue || w.Left || w.WhyCode != observe.WaitAnnounced ||
		w.Why != w.WhyCode.Text() {
		t.Errorf("shown as %+v", w)
	}
	if !r.fact("vm").Waits() {
		t.Error("a port became active because time had passed")
	}
	if err := r.command(func(ctx context.Context) error {
		return r.commands.Activate(ctx, api.Activate{Port: "vm"})
	}); err != nil || r.fact("vm").Waits() {
		t.Errorf("activated: %v %+v", err, r.fact("vm"))
	}
	if w := r.shownWait("vm"); w != nil {
		t.Errorf("active, and shown as %+v", w)
	}
	// A guest that has left may stay away without limit.
	r.waiting.Begin(state.Wait{ID: id("vm"), Wait: presence.Wait{Left: true, Why: observe.WaitQEMUStopped}})
	r.state.Waits[0].Since = time.Now().Add(-time.Hour)
	r.waiting.Watch()
	if len(r.told(event.Overdue)) != 1 {
		t.Errorf("events %+v", r.told(event.Overdue))
	}
}

// An agent silences a port before it writes that down. One that is killed in between must not have its successor speak
// for a guest that runs elsewhere.
func TestS100_ASilenceThatWasNotWrittenDownOutlivesTheAgent(t *testing.T) {
	r := domainRig(t)
	before := r.dir
	r.dir = filepath.Join(t.TempDir(), "state")
	if err := os.CopyFS(r.dir, os.DirFS(before)); err != nil {
		t.Fatal(err)
	}
	r.libvirtSays(guest.RunLeft) // goes to the directory before
	if !r.fact("vm").Waits() || r.saved().WaitOf(id("vm")) != nil {
		t.Fatalf("silent: %v, written down: %+v", r.fact("vm").Waits(), r.saved().WaitOf(id("vm")))
	}
	if err := r.restart(base); err != nil {
		t.Fatal(err)
	}
	w := r.wait("vm")
	if !r.fact("vm").Waits() || r.speaks("vm") || !w.Left || w.Why != observe.WaitRecordLost || w.Number < 2 {
		t.Errorf("after the restart: %+v, spoken for %v, %+v", r.fact("vm"), r.speaks("vm"), w)
	}
	r.libvirtSays(guest.RunHere) // the migration has failed
	if r.fact("vm").Waits() || !r.speaks("vm") {
		t.Errorf("its guest runs: %+v", r.fact("vm"))
	}
}

// Who says that a guest has stopped waits for the kernel alone: the disk follows. Where the kernel refuses, the answer
// is an error until the port is silent.
func TestS100_ACallerThatSilencesAPortDoesNotWaitForTheDisk(t *testing.T) {
	r := domainRig(t)
	silence := func() error { return r.waiting.Silence(planned(r.Active().Plan, "vm")) }
	r.kernel.fail = errors.New("no memory")
	for range 2 { // asked again, it is the same
		if err := silence(); err == nil || r.fact("vm").Waits() || !strings.Contains(err.Error(),
			"port vm is not silent yet, the host tries it again: activate the plan: no memory") {
			t.Fatalf("%v: %+v", err, r.fact("vm"))
		}
	}
	r.kernel.fail = nil
	r.settler.settle()
	if err := silence(); err != nil || !r.fact("vm").Waits() {
		t.Errorf("%v: %+v", err, r.fact("vm"))
	}

	r = domainRig(t)
	if err := r.waiting.Silence(planned(r.Active().Plan, "vm")); err != nil || !r.fact("vm").Waits() || r.speaks("vm") {
		t.Fatalf("%v: %+v", err, r.fact("vm"))
	}
	if w := r.saved().WaitOf(id("vm")); w != nil {
		t.Errorf("written down before the answer: %+v", w)
	}
	r.until("written down", func() bool { return r.saved().WaitOf(id("vm")) != nil })
}

// What somebody says counts less than what the port's own QEMU says.
func TestS100_AnOperatorDoesNotWakeAPortWhoseQEMUWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "qmp")
	q := newFakeQEMU(t, path, nicFilter("52:54:00:00:00:01", false))
	q.says("inmigrate")
	r := monitoredPort(t, path)
	r.until("waiting", func() bool { return r.wait("vm").Why == observe.WaitQEMUWaits })
	activate := func() error {
		return r.command(func(ctx context.Context) error {
			return r.commands.Activate(ctx, api.Activate{Port: "vm"})
		})
	}
	err := activate()
	if err == nil || !strings.Contains(err.Error(), path) || !r.fact("vm").Waits() {
		t.Errorf("refused with %v; the port waits: %v", err, r.fact("vm").Waits())
	}
	q.end()
	r.until("the monitor is lost", func() bool { return r.waiting.SeenBy(path).Run == guest.RunUnknown })
	if err := activate(); err != nil || r.fact("vm").Waits() {
		t.Errorf("with nobody else to say: %v, waits %v", err, r.fact("vm").Waits())
	}
}

func TestS99_AnExpectedGuestsPortsWait(t *testing.T) {
	r := newRig(t, base)
	r.dev.tap("tap0")
	r.dev.tap("tap1")
	if err := r.command(func(ctx context.Context) error {
		return r.commands.Expect(ctx, api.Expect{Guest: "vm1"})
	}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []spec.Port{{Name: "vm1/net0", PortGroup: "web", Device: "tap0", MAC: "52:54:00:00:00:01"},
		{Name: "vm11/net0", PortGroup: "web", Device: "tap1", MAC: "52:54:00:00:00:02"}} {
		if _, err := r.reconnect(p); err != nil {
			t.Fatal(err)
		}
	}
	if !r.fact("vm1/net0").Waits() || r.fact("vm11/net0").Waits() {
		t.Errorf("expected %+v, another %+v", r.fact("vm1/net0"), r.fact("vm11/net0"))
	}
}

// Within one host the port keeps its name: the new port stands beside the old one until the guest runs there.
func TestS99_APortStandsBesideTheOneThatItsGuestLeaves(t *testing.T) {
	r := newRig(t, base)
	r.dev.tap("tap0")
	r.dev.tap("tap1")
	vm := spec.Port{Name: "vm", PortGroup: "web", Device: "tap0", MAC: "52:54:00:00:00:01"}
	if err := r.connect(vm); err != nil {
		t.Fatal(err)
	}
	number := planned(r.Active().Plan, "vm").Number
	vm.Device = "tap1"
	for range 2 { // a hook may run twice
		if err := r.connectIncoming(vm); err != nil {
			t.Fatal(err)
		}
	}
	mac := planned(r.Active().Plan, "vm").InitialMAC
	if !r.fact("vm:incoming").Waits() || r.fact("vm").Waits() ||
		planned(r.Active().Plan, "vm:incoming").InitialMAC != mac {
		t.Fatalf("beside: %+v, %+v, MACs %s %s", r.fact("vm"), r.fact("vm:incoming"), mac,
			planned(r.Active().Plan, "vm:incoming").InitialMAC)
	}
	r.kernel.awake = map[plan.PortID]uint32{id("vm:incoming"): r.wait("vm:incoming").Number}
	r.waiting.Watch()
	if d := planned(r.Active().Plan, "vm").Device; d != "tap1" || r.fact("vm").Waits() ||
		planned(r.Active().Plan, "vm").Number != number {
		t.Errorf("the port has device %s, number %d and not %d, %+v", d, planned(r.Active().Plan, "vm").Number, number,
			r.fact("vm"))
	}
	left := planned(r.Active().Plan, "vm:left")
	if left == nil || left.Device != "tap0" || !r.fact("vm:left").Waits() ||
		left.InitialMAC != mac {
		t.Fatalf("left: %+v %+v", left, r.fact("vm:left"))
	}
	if planned(r.Active().Plan, "vm:incoming") != nil || len(r.kernel.succeeded) != 1 {
		t.Errorf("incoming is there still, or its place was taken %d times", len(r.kernel.succeeded))
	}
	// Two guests run at once: both ports stay, and the one that gets no frames is reported.
	r.kernel.awake[id("vm:left")] = r.wait("vm:left").Number
	r.waiting.Watch()
	r.until("a conflict", func() bool {
		return r.Active().Problems[id("vm")].Code == problem.RivalGuest ||
			r.Active().Problems[id("vm:left")].Code == problem.RivalGuest
	})
	if err := r.disconnect(api.Disconnect{Device: "tap0"}); err != nil {
		t.Fatal(err)
	}
	if len(r.state.Ports) != 1 || r.state.Ports[0].MAC != vm.MAC || r.state.Ports[0].Name != "vm" {
		t.Errorf("in the end: %+v", r.state.Ports)
	}
}

// The migration is cancelled before the guest has moved: nothing has changed.
func TestS99_AnIncomingPortGoesAsItCame(t *testing.T) {
	r := newRig(t, base)
	r.dev.tap("tap0")
	r.dev.tap("tap1")
	vm := spec.Port{Name: "vm", PortGroup: "web", Device: "tap0", MAC: "52:54:00:00:00:01"}
	if err := r.connect(vm); err != nil {
		t.Fatal(err)
	}
	to := vm
	to.Device = "tap1"
	if err := r.connectIncoming(to); err != nil {
		t.Fatal(err)
	}
	if err := r.disconnect(api.Disconnect{Device: "tap1"}); err != nil {
		t.Fatal(err)
	}
	if len(r.state.Ports) != 1 || r.state.Ports[0].MAC != vm.MAC || r.fact("vm").Waits() || len(r.state.Waits) != 0 {
		t.Errorf("%+v, waits %+v", r.state.Ports, r.state.Waits)
	}
	// The source's QEMU ends first: the incoming port has the MAC, and gets the name when the guest runs.
	if err := r.connectIncoming(to); err != nil {
		t.Fatal(err)
	}
	if err := r.disconnect(api.Disconnect{Device: "tap0"}); err != nil {
		t.Fatal(err)
	}
	if !r.fact("vm:incoming").Waits() || r.state.Ports[0].MAC != vm.MAC {
		t.Errorf("%+v %+v", r.fact("vm:incoming"), r.state.Ports)
	}
	r.kernel.awake = map[plan.PortID]uint32{id("vm:incoming"): r.wait("vm:incoming").Number}
	r.waiting.Watch()
	if len(r.state.Ports) != 1 || r.state.Ports[0].Name != "vm" || r.fact("vm").Waits() {
		t.Errorf("%+v %+v", r.state.Ports, r.fact("vm"))
	}
}

// A port that has learned more MACs than it may hold here, or than this host has room for, is refused in words.
func TestS100_APortIsRefusedWhereItsMACsHaveNoRoom(t *testing.T) {
	r := newRig(t, base)
	config := strings.Replace(base, "      - {name: other", "      - {name: few, security: {macLearning: {enabled: "+
		"true, limit: 10}}}\n      - {name: many, security: {macLearning: {enabled: true}}}\n"+
		"      - {name: own, overrides: {security: true}}\n      - {name: other", 1)
	if config == base {
		t.Fatal("the configuration has another form")
	}
	if err := r.restart(config); err != nil {
		t.Fatal(err)
	}
	r.kernel.macTable = 1000
	r.kernel.counters = map[plan.PortID]observe.Counters{id("u1"): {MACsHeld: 800}}
	for i, row := range []struct {
		group string
		macs  int
		force bool
		says  string // "" where it is connected
	}{
		{"few", 11, false, "it has learned 11 MACs where its guest runs, and port group lab/few lets a port hold 10"},
		{"other", 1, false, "and port group lab/other does not learn any here"},
		{"many", 201, false, "table of learned MACs has room for 200 more"},
		{"own", 201, false, "table of learned MACs has room for 200 more"},
		{"many", 201, true, ""},
		{"own", 200, false, ""},
		{"few", 10, false, ""},
		{"other", 0, false, ""},
	} {
		q := api.Incoming{MACs: row.macs, Force: row.force}
		q.Port = spec.Port{Name: fmt.Sprintf("p%d", i), Switch: "lab", PortGroup: row.group,
			Device: fmt.Sprintf("d%d", i)}
		err := r.command(func(ctx context.Context) error { _, err := r.commands.ConnectIncoming(ctx, q); return err })
		connected := r.connected.port(q.Name) != nil
		if row.says == "" && (err != nil || !connected) || row.says != "" && (!invalid(err) || connected ||
			!strings.Contains(err.Error(), row.says)) {
			t.Errorf("%+v: connected %v, %v", row, connected, err)
		}
	}
}

// A guest that needs what this host lacks is refused in words before its port is connected, unless somebody insists;
// a guest that starts here is not.
func TestS100_APortIsRefusedWhereItsGuestLacksSomething(t *testing.T) {
	r := newRig(t, base)
	r.dev.nic("eno1", 1500)
	if err := r.restart(base + "  - {name: vmk1, switch: lab, portGroup: web, role: host}\n"); err != nil {
		t.Fatal(err)
	}
	prepare := func(name string, q api.Incoming) error {
		q.Connect = api.Connect{Port: spec.Port{Name: name, Switch: "lab", PortGroup: "web", Device: "p" + name}}
		return r.command(func(ctx context.Context) error { _, err := r.commands.ConnectIncoming(ctx, q); return err })
	}
	if err := prepare("u", api.Incoming{NeedsUplink: true, Needs: []string{"lab/web", "vmk1"}}); err != nil ||
		r.connected.port("u") == nil {
		t.Errorf("with an uplink: %v", err)
	}
	delete(r.dev.byName, "eno1")
	r.settler.settle()
	for _, row := range []struct {
		q    api.Incoming
		says string
	}{
		{api.Incoming{NeedsUplink: true}, "reaches the physical network where it runs"},
		{api.Incoming{Needs: []string{"web"}}, "needs web, and "},
		{api.Incoming{Needs: []string{"vmk1"}}, "needs vmk1, and "},
		{api.Incoming{Needs: []string{"nfs"}},
			"neither a host port nor a port group of that name (vmk1, lab/web, lab/other)"},
	} {
		err := prepare("v", row.q)
		if !invalid(err) || !strings.Contains(err.Error(), row.says) || r.connected.port("v") != nil {
			t.Errorf("%+v: %v, want %q", row.q, err, row.says)
		}
	}
	if err := prepare("v", api.Incoming{NeedsUplink: true, Needs: []string{"nfs"}, Force: true}); err != nil {
		t.Errorf("by force: %v", err)
	}
	if err := r.connect(spec.Port{Name: "w", Switch: "lab", PortGroup: "web"}); err != nil {
		t.Errorf("a guest that starts: %v", err)
	}
}

// What a guest needs counts by the uplinks of its own port group: another group's uplink does not carry its traffic.
func TestS100_APortIsRefusedWhereItsGroupsOwnUplinksAreDown(t *testing.T) {
	r := newRig(t, base)
	r.dev.nic("eno1", 1500)
	config := strings.Replace(base, "uplinks: [{name: u1, device: eno1}]",
		"uplinks: [{name: u1, device: eno1}, {name: u2, device: eno2}]", 1)
	config = strings.Replace(config, "      - {name: other", "      - {name: storage, teaming: {active: [u2]}}\n"+
		"      - {name: free, teaming: {active: [u2]}, overrides: {teaming: true}}\n      - {name: other", 1)
	if err := r.restart(config + "  - {name: vmk1, switch: lab, portGroup: storage, role: host}\n"); err != nil {
		t.Fatal(err)
	}
	for i, row := range []struct {
		group string
		q     api.Incoming
		says  string // "" where it is connected
	}{
		{"web", api.Incoming{Needs: []string{"vmk1"}},
			"needs vmk1, and no uplink of port group lab/storage is up: u2 (eno2)"},
		{"web", api.Incoming{Needs: []string{"storage"}},
			"needs storage, and no uplink of port group lab/storage is up"},
		{"storage", api.Incoming{NeedsUplink: true}, "no uplink of port group lab/storage is up"},
		{"web", api.Incoming{NeedsUplink: true, Needs: []string{"lab/web"}}, ""},
		{"free", api.Incoming{NeedsUplink: true}, ""},
		{"storage", api.Incoming{NeedsUplink: true, Force: true}, ""},
	} {
		q := row.q
		q.Connect = api.Connect{Port: spec.Port{Name: fmt.Sprintf("v%d", i), Switch: "lab", PortGroup: row.group,
			Device: fmt.Sprintf("pv%d", i)}}
		err := r.command(func(ctx context.Context) error { _, err := r.commands.ConnectIncoming(ctx, q); return err })
		if row.says == "" && err != nil || row.says != "" && (!invalid(err) ||
			!strings.Contains(err.Error(), row.says)) {
			t.Errorf("%+v: %v", row, err)
		}
	}
}
