package kerneltest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"heddle/internal/dataplane"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

// rig is the switch program's recording build in the kernel, running a configuration.
type rig struct {
	t      *testing.T
	rec    *dataplane.Recorder
	text   string
	cfg    *spec.Config
	plan   *plan.Plan
	facts  plan.Facts
	now    time.Duration
	ledger ledger
}

// newRig puts a switch "s" in force. text is what a configuration file says below its name; a port is its name, its
// port group and, after a comma, anything more it sets: "vm1 web, txUplink: true". vm7 has the MAC 02:00:00:00:00:07
// and, as seventh port of the file, the number 7. Every device is up with an MTU of 1500.
func newRig(t *testing.T, text string, ports ...string) *rig {
	t.Helper()
	testkit.Root(t)
	l, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, rec: l.rec, text: configText(text, ports), facts: plan.Facts{}, now: l.now, ledger: ledger{}}
	t.Cleanup(func() {
		r.ledger.compare(r)
		if err := l.clear(r.now); err != nil {
			t.Error(err)
		}
	})
	r.parse()
	return r
}

// loadedProgram is the program and the time its tables have come to.
type loadedProgram struct {
	rec *dataplane.Recorder
	now time.Duration
}

// loaded loads the program once for all tests, which run one after the other: that takes some 300 ms. Each test begins
// with an empty switch of its own.
var loaded = sync.OnceValues(func() (*loadedProgram, error) {
	rec, err := dataplane.NewRecorder()
	return &loadedProgram{rec, time.Hour}, err
})

// clear ends a test whose time came to now: what its ports sent is long ago for the next one, which begins at a whole
// second.
func (l *loadedProgram) clear(now time.Duration) error {
	l.now = (now + time.Hour).Truncate(time.Second)
	return l.rec.SetPlan(&plan.Plan{}, nil, l.now)
}

func configText(text string, ports []string) string {
	var b strings.Builder
	b.WriteString("switches:\n- name: s\n" + strings.Trim(text, "\n") + "\nports:\n")
	for _, p := range ports {
		words, more, _ := strings.Cut(p, ",")
		name, group, _ := strings.Cut(words, " ")
		sw, port, other := strings.Cut(name, "/")
		if !other {
			sw, port = "s", name
		}
		if more != "" {
			more = "," + more
		}
		mac := plan.MAC(word(port)).String()
		fmt.Fprintf(&b, "- {name: %s, switch: %s, portGroup: %s, device: %s, mac: %q%s}\n", port, sw, group, port, mac,
			more)
	}
	return b.String()
}

func (r *rig) parse() {
	r.t.Helper()
	cfg, err := spec.Parse("test.yaml", []byte(r.text))
	if err != nil {
		r.t.Fatal(err)
	}
	r.resolve(cfg)
}

func (r *rig) resolve(cfg *spec.Config) {
	r.t.Helper()
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.cfg, r.plan = cfg, p
	for _, sw := range p.Switches {
		for _, port := range sw.Ports {
			r.knows(port.ID, plan.Fact{Up: true, MTU: 1500, SeenMAC: port.InitialMAC})
		}
		for _, u := range sw.Uplinks {
			r.knows(u.ID, plan.Fact{Up: true, MTU: 1500, DeviceMAC: plan.MAC(word(u.Device))})
		}
	}
	r.apply()
}

func (r *rig) knows(id plan.PortID, f plan.Fact) {
	if _, ok := r.facts[id]; !ok {
		r.facts[id] = f
	}
}

func (r *rig) apply() {
	r.t.Helper()
	if err := r.rec.SetPlan(r.plan, r.facts, r.now); err != nil {
		r.t.Fatal(err)
	}
}

// change replaces a piece of the configuration, which must be in it exactly once, and puts the result in force.
func (r *rig) change(from, to string) {
	r.t.Helper()
	if n := strings.Count(r.text, from); n != 1 {
		r.t.Fatalf("%q is %d times in the configuration", from, n)
	}
	r.text = strings.Replace(r.text, from, to, 1)
	r.parse()
}

// fact changes what the host shows of a port's or uplink's device.
func (r *rig) fact(name string, f func(*plan.Fact)) {
	r.t.Helper()
	x, ok := r.facts[r.id(name)]
	if !ok {
		r.t.Fatalf("%s has no device", name)
	}
	f(&x)
	r.facts[r.id(name)] = x
	r.apply()
}

// gone takes the device of a port or uplink away; connect brings it.
func (r *rig) gone(name string) {
	r.t.Helper()
	delete(r.facts, r.id(name))
	r.apply()
}

func down(f *plan.Fact) { f.Up = false }
func up(f *plan.Fact)   { f.Up = true }

// id finds the port or uplink of that name on any switch.
func (r *rig) id(name string) plan.PortID {
	r.t.Helper()
	for _, sw := range r.plan.Switches {
		id := plan.PortID{Switch: sw.Name, Name: name}
		if r.plan.Port(id) != nil || r.plan.Uplink(id) != nil {
			return id
		}
	}
	r.t.Fatalf("no port or uplink %s", name)
	return plan.PortID{}
}

// after lets time pass.
func (r *rig) after(d time.Duration) { r.now += d }

// sweep does what the agent does now and then.
func (r *rig) sweep() {
	r.t.Helper()
	if err := r.rec.Sweep(r.now); err != nil {
		r.t.Fatal(err)
	}
}
