package scenario

import (
	"fmt"
	"net/netip"
	"strings"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Scenario is one lab.
type Scenario struct {
	// Name is the lab's default name; namespaces are named after it.
	Name  string `yaml:"name"`
	Title string `yaml:"title,omitempty"`
	// Hosts are hypervisors: each is a network namespace with an agent of its own.
	Hosts []Host `yaml:"hosts"`
	// VMs are guests on ports of hosts.
	VMs []VM `yaml:"vms,omitempty"`
	// Switches are the switches of the physical network.
	Switches []Switch `yaml:"switches,omitempty"`
	// Routers forward IP between their interfaces.
	Routers []Router `yaml:"routers,omitempty"`
	// Links are the cables of the physical network.
	Links []Link `yaml:"links,omitempty"`
	// Controllers serve the definition to all hosts but nested ones, which join them.
	Controllers []Controller `yaml:"controllers,omitempty"`
	// Definition is the definition of the hosts' distributed switches, written in place; DefinitionFile names a file
	// that holds it instead. Both are for a scenario with controllers; after Parse, Definition is set in either case.
	Definition     *spec.Definition `yaml:"definition,omitempty"`
	DefinitionFile string           `yaml:"definitionFile,omitempty"`
}

// Controller is one heddle-controller, in a namespace of its own. The first starts the cluster; the others join it.
type Controller struct {
	Name string `yaml:"name"`
	// Addresses of its one adapter, ControllerDevice, to which a link is connected.
	Addresses []netip.Prefix `yaml:"addresses"`
}

// ControllerDevice is the only adapter of a controller.
const ControllerDevice = "eth0"

// Host is one hypervisor. A host with NICs is a nested one: its NICs are guest ends of another host's ports.
type Host struct {
	Name string `yaml:"name"`
	NICs []NIC  `yaml:"nics,omitempty"`
	// Labels with which the host joins the controllers.
	Labels map[string]string `yaml:"labels,omitempty"`
	// Config is the host's Heddle configuration, written in place; ConfigFile names a file that holds it instead,
	// relative to the scenario's file. After Parse, Config is set in either case.
	Config     *spec.Config `yaml:"config,omitempty"`
	ConfigFile string       `yaml:"configFile,omitempty"`
}

// NIC is a nested host's network adapter: a device of the nested host whose other end is a port of the host it runs on.
type NIC struct {
	Device string `yaml:"device"` // its name inside the nested host
	Host   string `yaml:"host"`
	Port   string `yaml:"port"`
	// MAC of the adapter; left out: that of the port, else derived from the names.
	MAC plan.MAC `yaml:"mac,omitempty"`
	// MTU in bytes, 68–65535, default 1500.
	MTU int `yaml:"mtu,omitempty"`
}

// VMKind says what a VM is made of.
type VMKind string

// The kinds of VM.
const (
	// Namespace is a network namespace with one adapter: the default.
	Namespace VMKind = "namespace"
	// QEMU is a real machine under QEMU on a tap device.
	QEMU VMKind = "qemu"
)

// NICModel is the adapter that a QEMU machine sees.
type NICModel string

// The adapter models.
const (
	VirtioNet NICModel = "virtio-net" // default
	E1000     NICModel = "e1000"
)

// VM is one guest with one adapter on a port of a host.
type VM struct {
	Name string `yaml:"name"`
	Kind VMKind `yaml:"kind,omitempty"` // default namespace
	Host string `yaml:"host"`
	// Port is the name of a port in the host's configuration; left out: the VM's name.
	Port string `yaml:"port,omitempty"`
	// Switch and PortGroup, in place of a port of the host's configuration, are of the controllers' definition: the
	// lab connects the VM when its host has joined, as a manager of VMs does. Device is what the adapter is called on
	// the host; left out: vm-NAME.
	Switch    string `yaml:"switch,omitempty"`
	PortGroup string `yaml:"portGroup,omitempty"`
	Device    string `yaml:"device,omitempty"`
	// MAC of the adapter; left out: that of the port, else derived from the names.
	MAC       plan.MAC       `yaml:"mac,omitempty"`
	Addresses []netip.Prefix `yaml:"addresses,omitempty"`
	// Gateway is the default route, within one of Addresses.
	Gateway netip.Addr `yaml:"gateway,omitempty"`
	// MTU in bytes, 68–65535, default 1500.
	MTU int `yaml:"mtu,omitempty"`
	// NIC is the adapter's model, for kind qemu only.
	NIC NICModel `yaml:"nic,omitempty"`
	// Queues makes the adapter one with so many pairs of queues. Of kind namespace its host's end is then a tap in
	// place of a veth, 1–256 queues; left out: a veth. Of kind qemu it is 1–8, default 1, for the model virtio-net.
	Queues int `yaml:"queues,omitempty"`
}

// The largest numbers of queue pairs: of a tap of the kernel (MAX_TAP_QUEUES), and of a machine under QEMU.
const (
	MaxTapQueues     = 256
	MaxMachineQueues = 8
)

// SwitchKind says what represents a physical switch.
type SwitchKind string

// The kinds of physical switch.
const (
	// Bridge is a Linux bridge: one broadcast domain that ignores tags.
	Bridge SwitchKind = "bridge"
	// Heddle is a second Heddle host whose ports are the physical switch's ports: access and trunk ports separate
	// VLANs.
	Heddle SwitchKind = "heddle"
)

// Switch is one switch of the physical network.
type Switch struct {
	Name string     `yaml:"name"`
	Kind SwitchKind `yaml:"kind,omitempty"` // default bridge
	// Config and ConfigFile are for kind heddle: as for Host.
	Config     *spec.Config `yaml:"config,omitempty"`
	ConfigFile string       `yaml:"configFile,omitempty"`
}

// Router is a namespace that forwards IP between its interfaces.
type Router struct {
	Name       string      `yaml:"name"`
	Interfaces []Interface `yaml:"interfaces"`
}

// Interface is one interface of a router. Either a link connects it, or it is connected to a port of a host: a router
// with all interfaces on ports is a virtual machine with as many adapters.
type Interface struct {
	Device    string         `yaml:"device"`
	MAC       plan.MAC       `yaml:"mac,omitempty"`
	Addresses []netip.Prefix `yaml:"addresses"`
	// Host and Port name the port to which it is connected; both or neither.
	Host string `yaml:"host,omitempty"`
	Port string `yaml:"port,omitempty"`
	// MTU in bytes, 68–65535, default 1500; only for an interface on a port, because a link has its own.
	MTU int `yaml:"mtu,omitempty"`
}

// OnPort reports whether the interface is plugged into a port of a host.
func (f *Interface) OnPort() bool { return f.Host != "" || f.Port != "" }

// Link is a cable: a veth pair between two nodes of the physical network.
type Link struct {
	A End `yaml:"a"`
	B End `yaml:"b"`
	// Rate limits each direction, in bits per second; 0: as fast as the machine can.
	Rate Rate `yaml:"rate,omitempty"`
	// MTU of both ends in bytes, 68–65535, default 1500.
	MTU int `yaml:"mtu,omitempty"`
}

// End is one end of a link: a device of a node, written "node/device".
type End struct{ Node, Device string }

func (e End) String() string { return e.Node + "/" + e.Device }

// UnmarshalText reads "node/device".
func (e *End) UnmarshalText(b []byte) error {
	node, device, ok := strings.Cut(string(b), "/")
	if !ok || node == "" || device == "" {
		return fmt.Errorf(`%q is not an end of a link; write node/device, such as "esx1/eno1"`, b)
	}
	*e = End{node, device}
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (e End) MarshalText() ([]byte, error) { return []byte(e.String()), nil }
