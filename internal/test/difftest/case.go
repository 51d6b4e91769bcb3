package difftest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"go.yaml.in/yaml/v4"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Case is a run that can be repeated: a host, and what happens on it. It is written as YAML for people.
type Case struct {
	Note  string `yaml:"note,omitempty"`
	State State  `yaml:"state"`
	Steps []Step `yaml:"steps"`
}

// State is a host's configuration and what it sees of the devices.
type State struct {
	Config  *spec.Config `yaml:"config"`
	Members []Member     `yaml:"members"`
	// MACTable is how many learned MACs the host's table holds, 0 = the configuration's.
	MACTable int `yaml:"macTable,omitempty"`
}

// Member is the device behind a port or an uplink; one that is not listed has none.
type Member struct {
	ID          plan.PortID  `yaml:"id,flow"`
	Number      uint32       `yaml:"number,omitempty"` // of a port
	Absent      bool         `yaml:"absent,omitempty"` // no device at present
	Up          bool         `yaml:"up"`
	MTU         int          `yaml:"mtu"`
	DeviceMAC   plan.MAC     `yaml:"deviceMAC,omitempty"`
	HostTraffic bool         `yaml:"hostTraffic,omitempty"`
	SeenMAC     plan.MAC     `yaml:"seenMAC,omitempty"`
	Promiscuous plan.Asks    `yaml:"promiscuous,omitempty"` // 0 unknown, 1 yes, 2 no
	Out         problem.Code `yaml:"out,omitempty"`
	Resting     []string     `yaml:"resting,flow,omitempty"`
	Assigned    string       `yaml:"assigned,omitempty"`
	LoopBlocked problem.Code `yaml:"loopBlocked,omitempty"`
	// InitialMAC is that of another port, in whose place this one comes; zero: the configuration's.
	InitialMAC plan.MAC `yaml:"initialMAC,omitempty"`
	Wait       uint32   `yaml:"wait,omitempty"`
	Left       bool     `yaml:"left,omitempty"`
	Awake      bool     `yaml:"awake,omitempty"`
}

// Step is one event: a frame at a port, a sweep, or a change of the state. It happens After the one before it.
type Step struct {
	After time.Duration `yaml:"after,omitempty"`
	At    plan.PortID   `yaml:"at,flow,omitempty"`
	Frame Bytes         `yaml:"frame,omitempty"`
	// FromHost: the frame is one of the host's own, on its way out by uplink At.
	FromHost bool   `yaml:"fromHost,omitempty"`
	Sweep    bool   `yaml:"sweep,omitempty"`
	Change   *State `yaml:"change,omitempty"`
}

// Bytes are written in hexadecimal.
type Bytes []byte

// MarshalText implements encoding.TextMarshaler.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(b)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Bytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.DecodeString(string(text))
	return err
}

// Resolve makes the plan and the facts of a state.
func (s *State) Resolve() (*plan.Plan, plan.Facts, error) {
	numbers, facts := map[plan.PortID]uint32{}, plan.Facts{}
	for _, m := range s.Members {
		if m.Number != 0 {
			numbers[m.ID] = m.Number
		}
		if !m.Absent {
			facts[m.ID] = plan.Fact{Up: m.Up, MTU: m.MTU, DeviceMAC: m.DeviceMAC, HostTraffic: m.HostTraffic,
				SeenMAC: m.SeenMAC, Promiscuous: m.Promiscuous, Out: problem.Of(m.Out).Ref(), Resting: m.Resting,
				Assigned: m.Assigned, LoopBlocked: problem.Of(m.LoopBlocked).Ref(), Wait: m.Wait, Left: m.Left,
				Awake: m.Awake}
		}
	}
	p, err := plan.Resolve(s.Config, numbers)
	if err != nil {
		return nil, nil, fmt.Errorf("resolve the case's configuration: %w", err)
	}
	for _, m := range s.Members {
		if port := p.Port(m.ID); port != nil && !m.InitialMAC.IsZero() {
			port.InitialMAC = m.InitialMAC
		}
	}
	if s.MACTable > 0 {
		p.SetMACTable(s.MACTable)
	}
	return p, facts, nil
}

// clone copies a state deeply.
func (s *State) clone() State {
	text, err := json.Marshal(s.Config)
	if err != nil {
		panic(err) // a configuration is plain data
	}
	c := State{Config: &spec.Config{}, Members: append([]Member(nil), s.Members...), MACTable: s.MACTable}
	if err := json.Unmarshal(text, c.Config); err != nil {
		panic(err)
	}
	return c
}

// Save writes the case to a file.
func (c *Case) Save(path string) error {
	text, err := yaml.Marshal(c)
	if err != nil {
		return fmt.Errorf("write case %s: %w", path, err)
	}
	return os.WriteFile(path, text, 0o644)
}

// Load reads a case from a file.
func Load(path string) (*Case, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &Case{}
	if err := yaml.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("read case %s: %w", path, err)
	}
	return c, nil
}
