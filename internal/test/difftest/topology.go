package difftest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// generator makes cases. Everything it does follows from its seed.
type generator struct {
	*rand.Rand
	state State
	vlans []uint16              // few, so that ports meet in them
	plan  *plan.Plan            // of the state
	macs  map[string][]plan.MAC // of a switch: what frames are sent to and from
	sent  []sentFrame           // the latest frames, to be answered and reflected
	due   []sentFrame           // frames to send next
	aged  time.Duration
	// meters draws what is metered from a source of its own, so that a seed still gives the same frames.
	meters *rand.Rand
	// rare rolls likewise what came later: ports that loops block, and probes.
	rare *rand.Rand
	// waits rolls which ports wait for their guests, likewise; two of three hosts know no such ports.
	waits    *rand.Rand
	migrates bool
	lastWait uint32 // the number of the latest
	clock    time.Duration
	// kin rolls which ports have one owner and use each other's MACs, likewise; two of three hosts know no owners.
	kin    *rand.Rand
	bonded bool
	// guards rolls which ports are guarded, and what their owners claim; see guards.go.
	guards  *rand.Rand
	guarded bool
	// probes rolls which switches have a health check, and frames that look like its probes; see probes.go.
	probes  *rand.Rand
	checked bool
}

// Generate makes a case of n steps from a seed.
func Generate(seed uint64, n int) *Case {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x6865646c65)), meters: rand.New(rand.NewPCG(seed, 0x6d65746572)),
		rare: rand.New(rand.NewPCG(seed, 0x6c6f6f70)), waits: rand.New(rand.NewPCG(seed, 0x7761697473))}
	g.migrates = g.waits.IntN(3) == 0
	g.kin = rand.New(rand.NewPCG(seed, 0x6b696e))
	g.bonded = g.kin.IntN(3) == 0
	g.state = g.topology()
	if tables := rand.New(rand.NewPCG(seed, 0x7461626c65)); tables.IntN(100) < 25 {
		// from a source of its own, so that a seed still gives the same frames
		g.state.MACTable = 1 + tables.IntN(12)
	}
	g.settle()
	if g.bonded {
		g.kinship()
		g.settle()
	}
	g.guards = rand.New(rand.NewPCG(seed, 0x6775617264))
	if g.guarded = g.guards.IntN(3) == 0; g.guarded {
		g.guard()
		g.settle()
	}
	g.probes = rand.New(rand.NewPCG(seed, 0x70726f6265))
	if g.checked = g.probes.IntN(3) == 0; g.checked {
		g.healthChecks()
		g.settle()
	}
	if g.migrates {
		g.waiting()
		g.settle()
	}
	c := &Case{Note: fmt.Sprintf("seed %d", seed), State: g.state.clone()}
	for len(c.Steps) < n {
		c.Steps = append(c.Steps, g.step())
	}
	return c
}

// chance is true in percent of 100 cases.
func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// pick takes one of a list.
func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

// ages are the ageing times in use; time advances by exactly these now and then.
var ages = []time.Duration{time.Second, 2 * time.Second, 10 * time.Second, 10 * time.Minute}

func (g *generator) topology() State {
	g.vlans = []uint16{0, 1, 10, 4094, uint16(2 + g.IntN(4000))}
	g.aged = pick(g, ages...)
	s := State{Config: &spec.Config{}}
	for i := range 1 + g.IntN(3) {
		s.Config.Switches = append(s.Config.Switches, g.oneSwitch(i))
	}
	count := 1 + g.IntN(8)
	if g.chance(30) {
		count = 1 + g.IntN(24)
	}
	if g.chance(5) {
		count = 25 + g.IntN(40)
	}
	numbers := g.Perm(200)
	for i := range count {
		s.Config.Ports = append(s.Config.Ports, g.port(s.Config, i))
		s.Members = append(s.Members, g.portMember(&s, i, uint32(numbers[i]+1)))
	}
	for i := range s.Config.Switches {
		for j := range s.Config.Switches[i].Uplinks {
			s.Members = append(s.Members, g.uplinkMember(&s, i, j))
		}
	}
	g.monitoring(s.Config)
	return s
}

func (g *generator) oneSwitch(i int) spec.Switch {
	s := spec.Switch{Name: fmt.Sprintf("s%d", i+1), Kind: spec.Distributed, MTU: pick(g, 0, 0, 1500, 1280, 9000, 2000)}
	if g.chance(15) {
		s.Kind = spec.Standard
	}
	for j := range g.IntN(5) {
		u := spec.Uplink{Name: fmt.Sprintf("u%d", j+1), Device: fmt.Sprintf("up%d.%d", i+1, j+1), Blocked: g.chance(5)}
		if g.chance(25) {
			u.VLANs = g.vlanList()
		}
		s.Uplinks = append(s.Uplinks, u)
	}
	if s.Kind == spec.Distributed {
		s.LAGs = g.lags(&s)
	}
	s.Checks = g.checks()
	if g.chance(50) {
		s.Defaults = g.policy(&s, true)
	}
	for j := range 1 + g.IntN(6) {
		s.PortGroups = append(s.PortGroups, g.portGroup(&s, j))
	}
	return s
}

func (g *generator) checks() (c spec.Checks) {
	for _, f := range []**bool{&c.ReversePath, &c.ReversePathPromiscuous, &c.BlockGuestBPDU} {
		if g.chance(40) {
			*f = new(bool)
		}
	}
	return c
}

func (g *generator) portGroup(s *spec.Switch, j int) spec.PortGroup {
	return spec.PortGroup{
		Name: fmt.Sprintf("g%d", j+1), Policy: g.policy(s, false),
		Overrides: spec.Overrides{VLAN: true, Security: true, Teaming: true, StormControl: true},
	}
}

// vlanList is one to three ids or ranges around the VLANs in use, each once.
func (g *generator) vlanList() []string {
	seen := map[string]bool{}
	var list []string
	for range 1 + g.IntN(3) {
		v := int(pick(g, g.vlans...))
		s := strconv.Itoa(v)
		if v < 4094 && g.chance(25) {
			s = fmt.Sprintf("%d-%d", v, min(4094, v+1+g.IntN(20)))
		}
		if g.chance(10) {
			s = "0-4094"
		}
		if !seen[s] {
			list = append(list, s)
		}
		seen[s] = true
	}
	return list
}

func (g *generator) port(c *spec.Config, i int) spec.Port {
	k := g.IntN(len(c.Switches))
	s := &c.Switches[k]
	p := spec.Port{
		Name: fmt.Sprintf("p%d", i+1), Switch: s.Name, PortGroup: pick(g, s.PortGroups...).Name,
		Device: fmt.Sprintf("dev%d", i+1), TxUplink: g.chance(10),
	}
	if g.chance(88) {
		p.MAC = plan.MAC{0x02, 0, 0, byte(k), byte(i), byte(g.IntN(256))}.String()
	}
	if g.chance(15) {
		p.Policy = g.policy(s, false)
	}
	return p
}

func (g *generator) portMember(s *State, i int, number uint32) Member {
	p := &s.Config.Ports[i]
	m := Member{ID: plan.PortID{Switch: p.Switch, Name: p.Name}, Number: number}
	g.setFacts(m.ID, &m, s)
	return m
}

// setFacts rolls what is seen of a port's device.
func (g *generator) setFacts(id plan.PortID, m *Member, s *State) {
	m.Absent, m.Up = g.chance(6), g.chance(93)
	m.MTU = pick(g, 1500, 1500, 9000, 1280, 1400, 2000)
	m.Promiscuous = pick(g, plan.AsksUnknown, plan.AsksYes, plan.AsksNo)
	m.LoopBlocked = ""
	if g.rare.IntN(100) < 4 {
		m.LoopBlocked = problem.LoopProbed
	}
	g.setTeamFacts(m, s)
	m.SeenMAC = plan.MAC{}
	for i := range s.Config.Ports {
		if p := &s.Config.Ports[i]; p.Switch == id.Switch && p.Name == id.Name && p.MAC != "" {
			m.SeenMAC = mustMAC(p.MAC)
		}
	}
	if m.SeenMAC.IsZero() || g.chance(20) {
		m.SeenMAC = g.strangeMAC(s)
	}
	if g.chance(10) {
		m.SeenMAC = plan.MAC{}
	}
}

// strangeMAC is an address that an adapter may have been given: its own choice, or somebody else's.
func (g *generator) strangeMAC(s *State) plan.MAC {
	if len(g.sent) > 0 && g.chance(40) {
		if src := pick(g, g.sent...).src; !src.IsGroup() {
			return src
		}
	}
	if len(s.Members) > 0 && g.chance(40) {
		m := pick(g, s.Members...)
		if g.chance(50) && !m.DeviceMAC.IsZero() {
			return m.DeviceMAC
		}
		return m.SeenMAC
	}
	if len(s.Config.Ports) > 0 && g.chance(30) {
		if p := pick(g, s.Config.Ports...); p.MAC != "" {
			return mustMAC(p.MAC)
		}
	}
	return g.station()
}

func mustMAC(s string) plan.MAC {
	m, err := plan.ParseMAC(s)
	if err != nil {
		panic(err) // the generator wrote it
	}
	return m
}

func (g *generator) uplinkMember(s *State, i, j int) Member {
	sw := &s.Config.Switches[i]
	m := Member{ID: plan.PortID{Switch: sw.Name, Name: sw.Uplinks[j].Name}}
	m.Absent, m.Up = g.chance(6), g.chance(88)
	m.Out = g.out(8)
	m.MTU = pick(g, 1500, 1500, 9000, 1280, 2000)
	m.DeviceMAC = plan.MAC{0x0a, 0, 0, 0, byte(i), byte(j)}
	m.HostTraffic = g.chance(40)
	if p := pick(g, s.Config.Ports...); p.MAC != "" && g.chance(15) {
		// a host interface that took over the device's MAC
		m.DeviceMAC = mustMAC(p.MAC)
	}
	return m
}

// station is one of a few MACs behind ports or outside.
func (g *generator) station() plan.MAC { return plan.MAC{0x06, 0, 0, 0, 0, byte(g.IntN(8))} }

// settle adopts a changed state: its plan, and the MACs of each switch. The generator made the state, so that it
// resolves.
func (g *generator) settle() {
	p, _, err := g.state.Resolve()
	if err != nil {
		panic(err)
	}
	g.plan, g.macs = p, map[string][]plan.MAC{}
	add := func(sw string, m plan.MAC) {
		if !m.IsZero() {
			g.macs[sw] = append(g.macs[sw], m)
		}
	}
	for _, s := range p.Switches {
		add(s.Name, g.station())
		for _, port := range s.Ports {
			add(s.Name, port.InitialMAC)
		}
	}
	for _, m := range g.state.Members {
		add(m.ID.Switch, m.SeenMAC)
		add(m.ID.Switch, m.DeviceMAC)
	}
}
