package agent

import (
	"strings"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/uplinks"
)

const balancedLab = `
switches:
- name: lab
  uplinks: [{name: u1, device: eno1}, {name: u2, device: eno2}]
  defaults: {teaming: {policy: load-based}}
  portGroups: [{name: web}, {name: fixed, teaming: {policy: explicit}}]
ports:
- {name: a, switch: lab, portGroup: web, device: va}
- {name: b, switch: lab, portGroup: web, device: vb}
- {name: c, switch: lab, portGroup: web, device: vc}
- {name: d, switch: lab, portGroup: fixed, device: vd}
`

// loadRig is an agent whose uplinks carry 1 Gb/s. Ports a and c begin on u2, b and d on u1 (their numbers are 1, 3, 2
// and 4).
type loadRig struct {
	*teamRig
	load *uplinks.Load
	now  time.Time
}

func newLoadRig(t *testing.T) *loadRig {
	t.Helper()
	r := &loadRig{teamRig: &teamRig{rig: &rig{t: t, dev: newFakeDevices(), kernel: &fakeKernel{}, dir: t.TempDir()}},
		now: time.Unix(1000, 0)}
	r.dev.speed = map[string]float64{"eno1": 1e9, "eno2": 1e9}
	for _, name := range []string{"eno1", "eno2"} {
		r.dev.nic(name, 1500).AdminUp = true
	}
	for _, name := range []string{"va", "vb", "vc", "vd"} {
		r.dev.veth(name, "02:00:00:00:00:0"+name[1:])
	}
	r.start(balancedLab)
	return r
}

// start starts a new agent with the same state.
func (r *loadRig) start(config string) {
	r.t.Helper()
	if err := r.restart(config); err != nil {
		r.t.Fatal(err)
	}
	r.load = uplinks.NewLoad(r.uplinkHost(), meter{r.shared}, uplinks.LoadOptions{Window: 30 * time.Second})
	r.follow("load", r.load)
	r.settler.settle()
	r.kernel.counters = map[plan.PortID]observe.Counters{}
	r.window(nil)
}

// window lets 30 s pass in which each port sends that rate, in Mb/s, by the uplink it uses.
func (r *loadRig) window(send map[string]float64) {
	r.t.Helper()
	r.now = r.now.Add(30 * time.Second)
	for port, megabits := range send {
		bytes := uint64(megabits * 1e6 / 8 * 30)
		c, u := r.kernel.counters[id(port)], r.kernel.counters[id(r.uses(port))]
		c.BytesOutToPnic += bytes
		u.BytesOut[abi.ClassUnicast] += bytes
		r.kernel.counters[id(port)], r.kernel.counters[id(r.uses(port))] = c, u
	}
	r.load.Balance(r.now)
	if r.Complaint() != "" {
		r.t.Fatal(r.Complaint())
	}
}

func (r *loadRig) expect(what, want string) {
	r.t.Helper()
	var got []string
	for _, port := range []string{"a", "b", "c", "d"} {
		got = append(got, r.uses(port))
	}
	if s := strings.Join(got, " "); s != want {
		r.t.Errorf("%s: a to d use %s, want %s", what, s, want)
	}
}

func TestS47_S48_APortMovesOffALoadedUplinkAndStaysThere(t *testing.T) {
	r := newLoadRig(t)
	r.expect("at first", "u2 u1 u2 u1")
	calm := map[string]float64{"a": 300, "b": 100, "c": 440, "d": 50}
	r.window(calm)
	r.expect("at 74 %", "u2 u1 u2 u1") // S48
	busy := map[string]float64{"a": 400, "b": 100, "c": 450, "d": 50}
	r.window(busy)
	r.expect("at 85 %", "u2 u1 u1 u1")
	if e := r.failovers(); len(e) != 1 || e[0].From != "u2" || e[0].To != "u1" || e[0].Ports != 1 {
		t.Errorf("events %+v", e)
	}
	for range 3 {
		r.window(busy)
	}
	r.expect("it settles", "u2 u1 u1 u1")
	r.start(balancedLab)
	r.expect("after a restart of the agent", "u2 u1 u1 u1")
	r.link("eno1", false)
	r.expect("u1 is down", "u2 u2 u2 u2")
}

func TestS47_AnAssignmentEndsWithItsTeam(t *testing.T) {
	r := newLoadRig(t)
	r.window(map[string]float64{"a": 400, "c": 450})
	r.expect("c moved", "u2 u1 u1 u1")
	explicit := strings.Replace(balancedLab, "{name: web}",
		"{name: web, teaming: {policy: explicit, active: [u2, u1]}}", 1)
	r.start(explicit)
	r.expect("another policy", "u2 u2 u2 u1")
	if len(r.state.Assigned) != 0 {
		t.Errorf("still assigned: %v", r.state.Assigned)
	}
	r.start(balancedLab)
	r.expect("and back", "u2 u1 u2 u1")
}

func TestS48_PortsOfOtherPoliciesDoNotMove(t *testing.T) {
	r := newLoadRig(t)
	for range 3 {
		r.window(map[string]float64{"d": 950})
	}
	r.expect("d fills u1 by itself", "u2 u1 u2 u1")
	for range 3 {
		r.window(map[string]float64{"d": 700, "b": 200})
	}
	r.expect("b gives way to d", "u2 u2 u2 u1")
}
