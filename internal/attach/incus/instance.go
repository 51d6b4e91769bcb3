package incus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/api"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Keys of an instance's configuration, which Incus leaves to its users.
const (
	keyPorts   = "user.heddle"         // eth0=lab/web eth1=db
	keyNeeds   = "user.heddle.needs"   // host ports and port groups that it needs beside its ports
	keyMonitor = "user.heddle.monitor" // socket of a second monitor of its QEMU
)

// Instance is a container or VM as Incus's API describes it.
type Instance struct {
	Name    string `json:"name"`
	Project string `json:"project"`
	Type    string `json:"type"`
	// Config and Devices are those of the instance with those of its profiles.
	Config  map[string]string            `json:"expanded_config"`
	Devices map[string]map[string]string `json:"expanded_devices"`
}

// VM reports whether the instance is a virtual machine.
func (i Instance) VM() bool { return i.Type == "virtual-machine" }

// UUID is what the instance keeps over its moves; "" where Incus has given it none.
func (i Instance) UUID() string {
	if id := i.Config["volatile.uuid"]; spec.ValidUUID(id) {
		return id
	}
	return ""
}

// ownerBegin begins the owners of ports of instances: guests of other kinds may have an instance's name.
const ownerBegin = "incus/"

// maxOwner is the longest name of an instance that begins a port's name, in bytes; it leaves space for an adapter.
const maxOwner = 40

// owner is the first part of the names of the instance's ports: its name, with its project's before it unless that is
// Incus's own, or its UUID where that can't begin a port's name.
func (i Instance) owner() string {
	name := i.Name
	if i.Project != "" && i.Project != "default" {
		name = i.Project + "_" + name
	}
	if len(name) > maxOwner || !spec.ValidName(name+"/eth0") {
		return i.UUID()
	}
	return name
}

// Wants are the ports of an instance, for those of its adapters that user.heddle names and that have a device. An error
// says which of them are left out.
func (i Instance) Wants() (list []api.Incoming, err error) {
	var faults []string
	for _, word := range words(i.Config[keyPorts]) {
		nic, to, is := strings.Cut(word, "=")
		device := i.Devices[nic]
		switch {
		case !is || nic == "" || to == "":
			faults = append(faults, fmt.Sprintf("%s: %q is not ADAPTER=PORT-GROUP or ADAPTER=SWITCH/PORT-GROUP",
				keyPorts, word))
		case device["type"] != "nic":
			faults = append(faults, fmt.Sprintf("%s: the instance has no network adapter %s", keyPorts, nic))
		case i.owner() == "":
			faults = append(faults, "it has neither a name that a port may have nor a UUID")
		default:
			if p, ok := i.port(nic, device, to); ok {
				list = append(list, p)
			}
		}
	}
	if len(faults) > 0 {
		err = fmt.Errorf("instance %s: %s", i.Name, strings.Join(faults, "; "))
	}
	return list, err
}

// names reports whether user.heddle names an adapter, whether it has a device or not.
func (i Instance) names(nic string) bool {
	return slices.ContainsFunc(words(i.Config[keyPorts]), func(word string) bool {
		name, _, is := strings.Cut(word, "=")
		return is && name == nic
	})
}

// port is the port of an adapter; ok is false while its device has no name yet.
func (i Instance) port(nic string, device map[string]string, to string) (p api.Incoming, ok bool) {
	p.Name, p.PortGroup, p.Owner = i.owner()+"/"+nic, to, ownerBegin+i.owner()
	if sw, group, both := strings.Cut(to, "/"); both {
		p.Switch, p.PortGroup = sw, group
	}
	p.Device = cmp.Or(device["host_name"], i.Config["volatile."+nic+".host_name"])
	if i.VM() { // the host sees the MAC of a container's adapter by itself
		p.MAC = cmp.Or(device["hwaddr"], i.Config["volatile."+nic+".hwaddr"])
		if socket := i.Config[keyMonitor]; socket != "" {
			p.Monitor = spec.Monitor{Socket: socket}
			if i.adapters() > 1 { // where there is one, no name is needed
				p.Monitor.NIC = "dev-incus_" + nic
			}
		}
	}
	if id := i.UUID(); id != "" {
		p.VM, p.Adapter = id, nic
	}
	p.Needs = words(i.Config[keyNeeds])
	return p, p.Device != ""
}

// adapters is how many network adapters the instance has.
func (i Instance) adapters() (n int) {
	for _, d := range i.Devices {
		if d["type"] == "nic" {
			n++
		}
	}
	return n
}

// same reports whether a port is connected as it is wanted.
func same(have api.Port, want api.Incoming) bool {
	return have.Origin == api.FromRun && have.ReasonCode != problem.OwnerAwaited &&
		have.Device == want.Device && have.PortGroup == want.PortGroup &&
		(want.Switch == "" || have.Switch == want.Switch) && have.VM == want.VM &&
		(want.MAC == "" || strings.EqualFold(have.MAC, want.MAC))
}

// connected finds the port that is connected for a want, also while it waits beside the one that it replaces.
func connected(ports []api.Port, want api.Incoming) bool {
	return slices.ContainsFunc(ports, func(p api.Port) bool {
		return (p.Name == want.Name || p.Name == want.Name+":incoming") && same(p, want)
	})
}
