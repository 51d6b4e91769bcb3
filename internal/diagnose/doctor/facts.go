package doctor

import (
	"time"

	"heddle/internal/api"
)

// Facts are what is known about a host. Facts that could not be determined are in Unknown, by name, with the reason.
type Facts struct {
	Kernel  Kernel
	Pins    Pins
	Agent   Agent
	Config  Config
	Devices map[string]Device
	// Uplinks and Ports are those of the switches, from the agent or, without an agent, from the file.
	Uplinks []Uplink
	Ports   []Port
	Clock   Clock
	// Machine is the content of /etc/machine-id, "" where there is none.
	Machine string
	// BridgeNetfilter: frames on Linux bridges pass the host's packet filter (net.bridge.bridge-nf-call-iptables).
	BridgeNetfilter bool
	// Forwarding: the host routes IPv4 between its interfaces.
	Forwarding bool
	Unknown    map[Fact]string
}

// Fact names a fact that may be unknown.
type Fact string

// The facts that may be unknown, as they are shown.
const (
	FactTCX     Fact = "tcx"
	FactJIT     Fact = "bpf JIT"
	FactBacklog Fact = "receive backlog"
	FactPins    Fact = "pins"
	FactAgent   Fact = "agent"
	FactConfig  Fact = "configuration"
	FactMounts  Fact = "bpf file system"
	FactDevices Fact = "devices"
)

// Kernel is what the running kernel offers.
type Kernel struct {
	Release      string
	Major, Minor int
	// BTF: the kernel describes its own types.
	BTF bool
	// TCX: programs may be attached to devices by tcx. It counts unless unknown.
	TCX bool
	// JIT: programs are compiled, not interpreted. It counts unless unknown.
	JIT bool
	// Realtime: it is a PREEMPT_RT kernel.
	Realtime bool
	// Confidential: kernel lockdown keeps programs from reading kernel memory.
	Confidential bool
	// Backlog is net.core.netdev_max_backlog in frames; it counts unless unknown.
	Backlog int
}

// Clock is the machine's: what it shows, and a time that has passed for certain, that of the program's build.
type Clock struct{ Now, Passed time.Time }

// Pins is the directory in which the agents keep kernel objects.
type Pins struct {
	Dir string // of all agents
	// Mounted: a bpf file system is mounted there. Lasting: the first process of the machine sees it too.
	Mounted, Lasting bool
	// Agents are the agents that have pinned kernel objects; Alive are those of them that answer.
	Agents []string
	Alive  map[string]bool
}

// Agent is the state of the agent.
type Agent struct {
	Name    string
	Running bool
	// Own is the version of this program, Version the agent's.
	Own, Version string
	Warnings     []string
	// Remembers: it has a saved state, so that it has run before.
	Remembers bool
	// StateFault says why it can't keep a change; "" where it can.
	StateFault string
	// Elsewhere is the path of the network namespace of the agent's devices, if that is not this command's; the devices
	// were examined there. Place is the agent's boot and namespace.
	Elsewhere, Place string
	// Lookalikes describe devices that have the alias of its host ports but are not its devices.
	Lookalikes []string
	// Probed is how many uplinks take part in the health check of the physical network, Network what was found there.
	Probed  int
	Network []api.NetworkFinding
	// Member is its host's part in a cluster; nil if it is not known.
	Member *api.Membership
}

// Config is the configuration file.
type Config struct {
	File   string
	Exists bool
	// Empty: the file says nothing: it has at most comments, or was cut.
	Empty  bool
	Faults []string
}

// Device is one network device of this host.
type Device struct {
	Name, Driver string // Driver is the kernel's word for a virtual device; "" for a physical one
	Index        int
	MTU          int // bytes of layer 3
	Up           bool
	Promiscuous  bool
	// Master is the bridge, bond or team that has the device; MasterKind the kernel's word for it.
	Master, MasterKind string
	// Upper are the devices on top of it: VLAN, macvlan and ipvlan devices.
	Upper []string
	// PeerMTU is the MTU of a veth's other end, 0 if it is not known.
	PeerMTU int
	// Features are the offloads that are on (ethtool -k).
	Features map[string]bool
	// Detached: the switch's own program is not on it. Before are others' programs that see frames before the switch
	// does, Behind are those of tcx and tc that see the frames that the switch passes on.
	Detached bool
	// Former are the programs after it that are Heddle's as well: another agent's, or one that an agent has lost.
	Before, Former []api.ProgramBefore
	Behind         []string
	// Addresses are the host's addresses on it, with their prefix lengths.
	Addresses []string
	// Manager is the network manager that configures the device, "" if none was found.
	Manager string
	// StrictReversePath: the host drops packets if the route back to their source uses another device (rp_filter 1).
	StrictReversePath bool
}

// Uplink is one uplink of a switch.
type Uplink struct {
	Switch, Name, Device string
	SwitchMTU            int
	State                api.PortState // "" when no agent says it
	Reason               string
	Before               []api.ProgramBefore // according to the agent
	Tunnel               bool                // it carries overlay segments, and its device is the agent's
}

// Port is one port of a switch.
type Port struct {
	Switch, Name, Device, VLAN string
	Host                       bool
	SwitchMTU                  int
	State                      api.PortState // "" when no agent says it
	Reason                     string
	Before                     []api.ProgramBefore // according to the agent
}

func (u Uplink) label() string { return "uplink " + u.Switch + "/" + u.Name }
func (p Port) label() string   { return "port " + p.Switch + "/" + p.Name }
