package agent

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heddle/internal/dataplane/compile"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/announce"
)

// teamed is a switch with three uplinks; %s is more of its teaming.
const teamed = `
switches:
- name: lab
  upDelay: 0s
  uplinks: [{name: u1, device: eno1}, {name: u2, device: eno2}, {name: u3, device: eno3, vlans: ["0-50"]}]
  defaults: {teaming: {policy: explicit, active: [u1, u2], standby: [u3]%s}}
  portGroups:
  - {name: ten, vlan: {access: 10}}
  - {name: hundred, vlan: {access: 100}}
  - {name: some, vlan: {trunk: ["0", "20-21"]}}
  - {name: all, vlan: {trunk: ["0-4094"]}, security: {macLearning: {enabled: true}, forgedTransmits: accept}}
  - {name: silent, vlan: {access: 10}, teaming: {notifySwitches: false}}
ports:
- {name: a, switch: lab, portGroup: ten, device: va, mac: "02:00:00:00:00:0a"}
- {name: b, switch: lab, portGroup: hundred, device: vb, mac: "02:00:00:00:00:0b"}
- {name: c, switch: lab, portGroup: some, device: vc, mac: "02:00:00:00:00:0c"}
- {name: d, switch: lab, portGroup: all, device: vd, mac: "02:00:00:00:00:0d"}
- {name: e, switch: lab, portGroup: silent, device: ve, mac: "02:00:00:00:00:0e"}
- {name: f, switch: lab, portGroup: ten, device: vf, mac: "02:00:00:00:00:0f"}
`

// teamRig is an agent with that teaming; f's owner is down.
type teamRig struct {
	*rig
	sent *sentFrames
}

// sentFrames collects what is announced.
type sentFrames struct {
	mu   sync.Mutex
	list []announce.Announcement
}

func (s *sentFrames) SendThrough(ifindex uint32, frame []byte) error { return s.Send(ifindex, frame) }

func (s *sentFrames) Send(ifindex uint32, frame []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, announce.Announcement{Device: ifindex, Frame: slices.Clone(frame)})
	return nil
}

func (s *sentFrames) Close() error { return nil }

func newTeamRig(t *testing.T, more string) *teamRig {
	t.Helper()
	r := &teamRig{rig: &rig{t: t, dev: newFakeDevices(), kernel: &fakeKernel{}, dir: t.TempDir()}, sent: &sentFrames{}}
	for i, name := range []string{"eno1", "eno2", "eno3"} {
		d := r.dev.nic(name, 1500)
		d.AdminUp = true
		d.MAC = plan.MAC{2, 0, 0, 0, 1, byte(i + 1)}
	}
	for _, name := range strings.Fields("va vb vc vd ve vf") {
		r.dev.veth(name, "02:00:00:00:00:0"+name[1:])
	}
	r.dev.byName["vf"].Peer.AdminUp = false
	if err := r.restart(fmt.Sprintf(teamed, more)); err != nil {
		t.Fatal(err)
	}
	r.announces() // what the start announces has a test of its own
	return r
}

// announces makes the agent announce from now on.
func (r *teamRig) announces() {
	t := r.t
	t.Helper()
	n := announce.Start(r.log, func() (announce.Sender, error) { return r.sent, nil })
	r.teaming.announcer = n
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
}

// link sets the carrier of a device as a notification would report it.
func (r *teamRig) link(device string, up bool) {
	r.t.Helper()
	r.dev.byName[device].Carrier = up
	r.note()
}

func (r *teamRig) note() {
	r.t.Helper()
	r.notified(hostdev.Note{})
	if r.Complaint() != "" {
		r.t.Fatal(r.Complaint())
	}
}

// uses returns which uplink a port uses according to the kernel's tables.
func (r *teamRig) uses(port string) string {
	r.t.Helper()
	d := r.kernel.last()
	return strings.Join(compile.UplinksInUse(d, d.Plan.Switch("lab"), d.Plan.Port(id(port))), " ")
}

func (r *teamRig) expectUse(what, want string) {
	r.t.Helper()
	if got := r.uses("a"); got != want {
		r.t.Errorf("%s: port a uses %q, want %q", what, got, want)
	}
}

// failovers returns the failover events since the last call.
func (r *teamRig) failovers() []event.Event {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	cancel()
	all, _, _ := r.events.After(ctx, 0)
	return slices.DeleteFunc(all, func(e event.Event) bool { return e.Kind != event.Failover })
}

func TestS43_S45_PortsFollowTheirTeamAndComeBack(t *testing.T) {
	r := newTeamRig(t, "")
	r.expectUse("at first", "u1")
	r.link("eno1", false)
	r.expectUse("u1 has no link", "u2")
	r.dev.byName["eno2"].AdminUp = false
	r.note()
	r.expectUse("u2 is set down", "u3")
	gone := r.dev.byName["eno3"]
	delete(r.dev.byName, "eno3")
	r.note()
	r.expectUse("u3 is gone", "")
	r.dev.byName["eno3"] = gone
	r.note()
	r.expectUse("u3 is back", "u3")
	r.link("eno1", true)
	r.expectUse("u1 is back", "u1")
	var texts []string
	for _, e := range r.failovers() {
		texts = append(texts, fmt.Sprintf("%d %s>%s %s: %s", e.Ports, e.From, e.To, e.Cause,
			e.Text[strings.LastIndex(e.Text, ": ")+2:]))
	}
	want := []string{
		"6 u1>u2 link-lost: its device eno1 has no link", "6 u2>u3 link-lost: its device eno2 was set down",
		"6 u3> link-lost: its device eno3 is gone",
		"6 >u3 uplink-back: u3 is back", "6 u3>u1 uplink-back: u1 is back",
	}
	// f is down: it uses no uplink, and its moves are not reported.
	for i := range want {
		want[i] = strings.Replace(want[i], "6", "5", 1)
	}
	if !slices.Equal(texts, want) {
		t.Errorf("events\n%s\nwant\n%s", strings.Join(texts, "\n"), strings.Join(want, "\n"))
	}
	if r.kernel.reteamed != 3 {
		t.Errorf("%d of the three losses took the short way", r.kernel.reteamed)
	}
}

func TestS43_TheUpDelayIsWaitedFor(t *testing.T) {
	r := newTeamRig(t, "")
	edit := strings.Replace(fmt.Sprintf(teamed, ""), "upDelay: 0s", "upDelay: 50ms", 1)
	if err := r.restart(edit); err != nil {
		t.Fatal(err)
	}
	r.expectUse("at the start links are taken as they are", "u1")
	r.link("eno1", false)
	r.link("eno1", true)
	r.expectUse("back for an instant", "u2")
	if why := r.kernel.last().Facts[id("u1")].Out; why.Value().Code != problem.UpDelay ||
		why.For != 50*time.Millisecond {
		t.Errorf("u1 is out because %q", why)
	}
	select {
	case <-r.teaming.woken():
		r.settler.settle()
	case <-time.After(30 * time.Second):
		t.Fatal("nothing happens when the delay has passed")
	}
	r.expectUse("after the delay", "u1")
	if r.teaming.woken() != nil {
		t.Error("the loop is woken again for nothing")
	}
}

func TestS44_WithoutFailbackPortsStayAlsoOverARestartUntilTheyArePowerCycled(t *testing.T) {
	r := newTeamRig(t, ", failback: false")
	r.link("eno1", false)
	r.link("eno1", true)
	r.expectUse("u1 is back", "u2")
	if err := r.restart(fmt.Sprintf(teamed, ", failback: false")); err != nil {
		t.Fatal(err)
	}
	r.expectUse("the agent is started again", "u2")
	r.dev.byName["va"].Peer.AdminUp = false
	r.note()
	r.dev.byName["va"].Peer.AdminUp = true
	r.note()
	r.expectUse("its owner was off", "u1")
	if got := r.uses("b"); got != "u2" {
		t.Errorf("another port uses %q", got)
	}
	r.link("eno2", false)
	if got := r.uses("b"); got != "u3" {
		t.Errorf("u2 failed: port b uses %q", got)
	}
	r.link("eno3", false)
	if got := r.uses("b"); got != "u1" {
		t.Errorf("all the rest has failed: port b uses %q", got)
	}
}

func TestS44_AnUplinkThatFailedWithoutTheAgentIsLeftForGood(t *testing.T) {
	r := newTeamRig(t, ", failback: false")
	r.dev.byName["eno1"].Carrier = false
	if err := r.restart(fmt.Sprintf(teamed, ", failback: false")); err != nil {
		t.Fatal(err)
	}
	r.expectUse("started with u1 down", "u2")
	if e := r.failovers(); len(e) != 1 || e[0].Ports != 6 || e[0].From != "u1" || e[0].To != "u2" {
		t.Errorf("events %+v", e)
	}
	r.link("eno1", true)
	r.expectUse("u1 is back", "u2")
}

// announced waits for what is announced at once after a change: "device vlan mac" for each RARP, sorted.
func (r *teamRig) announced(n int) []string {
	r.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		got := r.rarps()
		if len(got) >= n {
			return got
		}
		select {
		case <-deadline:
			r.t.Fatalf("announced %q, want %d", got, n)
		case <-time.After(time.Millisecond):
		}
	}
}

// rarps returns the different RARPs sent so far.
func (r *teamRig) rarps() []string {
	r.sent.mu.Lock()
	defer r.sent.mu.Unlock()
	seen := map[string]bool{}
	for _, s := range r.sent.list {
		f, vlan := s.Frame, "-"
		if binary.BigEndian.Uint16(f[12:]) == 0x8100 {
			vlan = fmt.Sprint(binary.BigEndian.Uint16(f[14:]))
			f = append(slices.Clone(f[:12]), f[16:]...)
		}
		if binary.BigEndian.Uint16(f[12:]) == 0x8035 {
			seen[fmt.Sprintf("%d %s %x", s.Device, vlan, f[11])] = true
		}
	}
	var all []string
	for s := range seen {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

func TestS49_EveryMovedPortIsAnnouncedOnItsNewUplinkInItsVLANs(t *testing.T) {
	r := newTeamRig(t, "")
	r.kernel.macs = []observe.MACEntry{
		{Switch: "lab", VLAN: 300, MAC: plan.MAC{2, 0, 0, 0, 0, 0xd1}, Port: id("d")},
		{Switch: "lab", VLAN: 0, MAC: plan.MAC{2, 0, 0, 0, 0, 0xd2}, Port: id("d")},
	}
	r.link("eno1", false)
	u2 := r.dev.byName["eno2"].Index
	want := []string{
		// not e, which notifies nobody, nor f, which is down
		"10 a", "100 b", "- c", "20 c", "21 c", "- d", "300 d", "300 d1", "- d2",
	}
	for i := range want {
		want[i] = fmt.Sprintf("%d %s", u2, want[i])
	}
	slices.Sort(want)
	if got := r.announced(len(want)); !slices.Equal(got, want) {
		t.Errorf("announced\n%q, want\n%q", got, want)
	}
}

func TestS49_AnUplinkThatDoesNotCarryTheVLANIsNotToldOfIt(t *testing.T) {
	r := newTeamRig(t, "")
	r.dev.byName["eno2"].Carrier = false
	r.link("eno1", false)
	u3 := r.dev.byName["eno3"].Index
	for _, s := range r.announced(5) {
		if strings.HasPrefix(s, fmt.Sprintf("%d 100 ", u3)) {
			t.Errorf("announced %q on an uplink that does not carry VLAN 100", s)
		}
	}
}

func TestS50_AConnectedPortIsAnnouncedAndAskedForItsGroups(t *testing.T) {
	r := newTeamRig(t, "")
	r.dev.byName["vf"].Peer.AdminUp = true
	r.note()
	want := []string{fmt.Sprintf("%d 10 f", r.dev.byName["eno1"].Index)}
	if got := r.announced(1); !slices.Equal(got, want) {
		t.Errorf("announced %q, want %q", got, want)
	}
	r.sent.mu.Lock()
	defer r.sent.mu.Unlock()
	queries := 0
	for _, s := range r.sent.list {
		if s.Device == r.dev.byName["vf"].Index && s.Frame[0]&1 == 1 && s.Frame[6] == 2 && s.Frame[10] == 1 {
			queries++
		}
	}
	if queries == 0 {
		t.Error("its owner was not asked for its groups")
	}
}
