package doctor

// Level says how bad a finding is.
type Level string

// The levels.
const (
	OK      Level = "ok"      // looked at, nothing to say
	Note    Level = "note"    // works, and yet somebody should know
	Wrong   Level = "wrong"   // does not work, or not as it should
	Unknown Level = "unknown" // could not be looked at
)

// Finding is what one check has to say about one thing.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Text says what was found.
	Text string `json:"text"`
	// Remedy says what to do: commands where there are any.
	Remedy string `json:"remedy,omitempty"`
}

// check looks at one matter. Without findings, sound says what was looked at. needs are the facts without which nothing
// can be said.
type check struct {
	name  string
	needs []Fact
	sound string
	look  func(Facts) []Finding
}

func checks() []check {
	return []check{
		{"kernel", nil, "new enough, and has what the switch needs", kernelAge},
		{"tcx", []Fact{FactTCX}, "programs can be attached to devices", kernelTCX},
		{"bpf JIT", []Fact{FactJIT}, "programs are compiled", kernelJIT},
		{"receive backlog", []Fact{FactBacklog}, "holds a frame that is flooded to the largest segment", backlog},
		{"bpf file system", []Fact{FactMounts}, "there, and outlives the agent", fileSystem},
		{"pins", []Fact{FactPins}, "every agent's kernel objects have their agent", pins},
		{"agent", []Fact{FactAgent}, "answers, and is of this program's version", agentAnswers},
		{"namespace", []Fact{FactDevices}, "the devices are this network namespace's", namespace},
		{"aliases", []Fact{FactAgent}, "no other device looks like a host port's", aliases},
		{"configuration", []Fact{FactConfig}, "valid", configuration},
		{"uplinks", []Fact{FactDevices}, "all there and up", uplinks},
		{"ports", []Fact{FactDevices}, "all have their device", ports},
		{"mtu", []Fact{FactDevices}, "devices carry what their switch lets through", mtu},
		{"other owners", []Fact{FactDevices}, "no bridge, bond or other device shares the switch's devices", owners},
		{"offloads", []Fact{FactDevices}, "no offload changes frames on their way", offloads},
		{"other programs", []Fact{FactDevices, FactTCX}, "nobody else's programs on the switch's devices", programs},
		{"managers", []Fact{FactDevices}, "no network manager configures the switch's devices", managers},
		{"host interfaces", []Fact{FactDevices}, "one interface for each of the host's subnets", hostInterfaces},
		{"bridge netfilter", nil, "the packet filter leaves bridged frames alone", bridgeNetfilter},
	}
}

// Examine runs every check and returns its findings: the faults, one that everything is in order, or one with the
// reason why it could not check.
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
