package fabric

import (
	"cmp"
	"crypto/sha256"
	"time"

	"heddle/internal/plan"
)

// End is an uplink of a host.
type End struct {
	Host   string // the host's id, "" for a host without controllers
	Switch string
	Uplink string
}

// Compare orders ends by switch, host and uplink.
func (e End) Compare(o End) int {
	return cmp.Or(cmp.Compare(e.Switch, o.Switch), cmp.Compare(e.Host, o.Host), cmp.Compare(e.Uplink, o.Uplink))
}

// EndID names an end in a probe: the first bytes of its SHA-256.
type EndID [16]byte

// ID returns the end's name in probes.
func (e End) ID() EndID {
	sum := sha256.Sum256([]byte(e.Host + "\x00" + e.Switch + "\x00" + e.Uplink))
	return EndID(sum[:])
}

// Member is an uplink that takes part.
type Member struct {
	End
	// Name is the host's name.
	Name string
	MAC  plan.MAC
	// MTU of the switch, in bytes of layer 3.
	MTU int
	// VLANs that ports of the switch use on this uplink, in order; 0 = untagged.
	VLANs []uint16
	// Bundle names the uplinks whose ports the physical switch has to bundle: a LAG, or a team with IP hash; "" for an
	// uplink that stands alone.
	Bundle string
	// Plug says where the uplink is plugged in, as LLDP tells it ("port 7 of tor-a"); "" where it is not known.
	Plug string
	// Speed of the link in each direction, in bits per second; 0 where the device reports none.
	Speed uint64
}

// What returns the uplink for people.
func (m *Member) What() string { return m.Name + "/" + m.Uplink }

// What agents know to do about probes; they tell their controllers. An agent that tells nothing is of an earlier
// version.
const (
	// AbleTunnels: it probes tunnels, and answers such probes.
	AbleTunnels = "tunnels"
	// AbleBenchmark: it takes part in benchmarks of the network.
	AbleBenchmark = "benchmark"
)

// Abilities returns those of this version.
func Abilities() []string { return []string{AbleTunnels, AbleBenchmark} }

// Path names what is probed: from an uplink to another one in a VLAN.
type Path struct {
	From, To End
	VLAN     uint16
}

// Compare orders paths.
func (p Path) Compare(o Path) int {
	return cmp.Or(p.From.Compare(o.From), p.To.Compare(o.To), cmp.Compare(p.VLAN, o.VLAN))
}

// Task is a path that a host has to probe.
type Task struct {
	Path
	// MAC is the address of the other uplink's device.
	MAC plan.MAC
	// MTU is the length of the longest probe, in bytes of layer 3.
	MTU int
	// Every is how often the path is probed while it passes; 0 for Round.
	Every time.Duration
}

// State is what is known of a path.
type State uint8

// The states.
const (
	Unknown State = iota // not enough probes so far
	Passes
	Lost   // no echo comes back
	OneWay // the other end hears, and its echoes do not come back
)

// Result is what the probes of a path found.
type Result struct {
	Path
	State State
	// Full is the state of probes of the switch's MTU, while State is Passes. Fits is the length of the longest probe
	// that passes where those do not, in bytes of layer 3; 0 before it is known.
	Full State
	Fits int
	// Astray is another uplink of the host on which the echoes arrive; "" for none.
	Astray string
	// Delay is how long a probe and its echo take in the mean, 0 if unknown.
	Delay time.Duration
	// Usual is the path's delay in the mean of the last hours, 0 if unknown.
	Usual time.Duration
	// Loss is how many of the last 64 probes were lost, in percent.
	Loss int
}
