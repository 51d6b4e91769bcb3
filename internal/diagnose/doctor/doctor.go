package doctor

// Level is the severity of a finding.
type Level string

// The levels.
const (
	OK      Level = "ok"      // examined, nothing found
	Note    Level = "note"    // works, but is worth knowing
	Wrong   Level = "wrong"   // does not work, or not properly
	Unknown Level = "unknown" // could not be examined
)

// Finding is the result of one check about one object.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Text describes what was found.
	Text string `json:"text"`
	// Remedy says what to do, with the commands if there are any.
	Remedy string `json:"remedy,omitempty"`
}

// check examines one subject. needs are the facts without which nothing can be decided. If there are no findings, the
// result is sound, which says what was examined; or none, if matter counts no objects to examine.
type check struct {
	name   string
	needs  []Fact
	sound  string
	look   func(Facts) []Finding
	matter func(Facts) int
	none   string
}

// Texts for checks that have no object to examine.
const (
	notConfigured = "none configured"
	noDevices     = "no switch has a device here yet"
)

func uplinkCount(f Facts) int { return len(f.Uplinks) }
func portCount(f Facts) int   { return len(f.Ports) }
func deviceCount(f Facts) int { return len(inUse(f)) }

func checks() []check {
	devices := []Fact{FactDevices}
	return []check{
		{name: "kernel", sound: "new enough, and has what the switch needs", look: kernelAge},
		{name: "tcx", needs: []Fact{FactTCX}, sound: "programs can be attached to devices", look: kernelTCX},
		{name: "bpf JIT", needs: []Fact{FactJIT}, sound: "programs are compiled", look: kernelJIT},
		{name: "receive backlog", needs: []Fact{FactBacklog},
			sound: "long enough for a broadcast to every port of the largest VLAN", look: backlog,
			matter: portCount, none: "no port is configured that could fill it"},
		{name: "bpf file system", needs: []Fact{FactMounts}, sound: "there, and outlives the agent", look: fileSystem},
		{name: "pins", needs: []Fact{FactPins},
			sound: "each switch in the kernel has its agent running, and would outlive it", look: pins,
			matter: func(f Facts) int { return len(f.Pins.Agents) + one(f.Agent.Running) },
			none:   "no switch is in the kernel"},
		{name: "agent", needs: []Fact{FactAgent}, sound: "answers, and is of this program's version",
			look: agentAnswers},
		{name: "controllers", needs: []Fact{FactAgent}, sound: "one answers", look: controllers,
			matter: func(f Facts) int { return one(f.Agent.Member != nil && f.Agent.Member.Member) },
			none:   "this host is in no cluster"},
		{name: "state directory", sound: "takes changes", look: stateDirectory,
			matter: func(f Facts) int { return one(f.Agent.Remembers) }, none: "no agent has run"},
		{name: "machine-id", sound: "set", look: machineID},
		{name: "namespace", needs: devices, sound: "the devices are this network namespace's", look: namespace},
		{name: "aliases", needs: []Fact{FactAgent}, sound: "no other device looks like a host port's", look: aliases},
		{name: "configuration", needs: []Fact{FactConfig}, sound: "valid", look: configuration},
		{name: "uplinks", needs: devices, sound: "all there and up", look: uplinks, matter: uplinkCount,
			none: notConfigured},
		{name: "network", needs: []Fact{FactAgent}, sound: "no probe has found a fault of the physical network",
			look: network, matter: func(f Facts) int { return f.Agent.Probed },
			none: "no switch has a health check"},
		{name: "ports", needs: devices, sound: "all have their device", look: ports, matter: portCount,
			none: notConfigured},
		{name: "mtu", needs: devices, sound: "devices carry what their switch lets through", look: mtu,
			matter: deviceCount, none: noDevices},
		{name: "other owners", needs: devices,
			sound: "no bridge, bond or other device shares the switch's devices", look: owners, matter: deviceCount,
			none: noDevices},
		{name: "offloads", needs: devices, sound: "no offload changes frames on their way", look: offloads,
			matter: deviceCount, none: noDevices},
		{name: "other programs", needs: []Fact{FactDevices, FactTCX},
			sound: "nobody else's programs on the switch's devices", look: programs, matter: deviceCount,
			none: noDevices},
		{name: "managers", needs: devices, sound: "no network manager configures the switch's devices", look: managers,
			matter: deviceCount, none: noDevices},
		{name: "host interfaces", needs: devices, sound: "one interface for each of the host's subnets",
			look: hostInterfaces},
		{name: "clock", sound: "shows a time that can be", look: clock},
		{name: "bridge netfilter", sound: "the packet filter leaves bridged frames alone", look: bridgeNetfilter},
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Examine runs every check and returns the findings: faults, or one finding that everything is in order, or one with
// the reason why the check was impossible.
func Examine(f Facts) []Finding {
	var all []Finding
	for _, c := range checks() {
		if missing := unknownOf(f, c); missing != nil {
			all = append(all, *missing)
			continue
		}
		found := c.look(f)
		if len(found) == 0 {
			found = []Finding{{Level: OK, Text: c.sound}}
			if c.matter != nil && c.matter(f) == 0 {
				found[0].Text = c.none
			}
		}
		for i := range found {
			found[i].Check = c.name
		}
		all = append(all, found...)
	}
	return all
}

func unknownOf(f Facts, c check) *Finding {
	for _, need := range c.needs {
		if why, unknown := f.Unknown[need]; unknown {
			return &Finding{Check: c.name, Level: Unknown, Text: "could not be looked at: " + why}
		}
	}
	return nil
}

// Healthy reports whether nothing is wrong.
func Healthy(findings []Finding) bool {
	for _, f := range findings {
		if f.Level == Wrong {
			return false
		}
	}
	return true
}

// Count returns how many findings have a level.
func Count(findings []Finding, l Level) (n int) {
	for _, f := range findings {
		n += one(f.Level == l)
	}
	return n
}
