package doctor

import (
	"fmt"
	"net/netip"
	"slices"

	"heddle/internal/api"
)

// used is one device that a switch uses.
type used struct {
	Device
	label  string
	uplink bool
	serves bool // according to the agent its frames reach the switch
}

// inUse returns the existing devices of uplinks and vNIC ports, one entry for each use.
func inUse(f Facts) []used {
	var all []used
	for _, u := range f.Uplinks {
		if d, ok := f.Devices[u.Device]; ok {
			all = append(all, used{d, u.label(), true, serves(u.State)})
		}
	}
	for _, p := range f.Ports {
		if d, ok := f.Devices[p.Device]; ok && !p.Host {
			all = append(all, used{d, p.label(), false, serves(p.State)})
		}
	}
	return all
}

func serves(s api.PortState) bool { return s != "" && s != api.Pending }

// mtu compares MTUs along a frame's path. The switch passes what its MTU allows, so that a device with a smaller one
// loses the largest frames, and a guest with a larger one sends frames that the switch refuses. Small packets pass in
// both cases, which makes the fault hard to see.
func mtu(f Facts) []Finding {
	var found []Finding
	for _, u := range f.Uplinks {
		if d, ok := f.Devices[u.Device]; ok && d.MTU < u.SwitchMTU {
			found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("%s: device %s has MTU %d, its switch %d: "+
				"large frames are lost", u.label(), u.Device, d.MTU, u.SwitchMTU),
				Remedy: fmt.Sprintf("ip link set %s mtu %d, if the physical network carries it; or lower the "+
					"switch's mtu", u.Device, u.SwitchMTU)})
		}
	}
	for _, p := range f.Ports {
		d, ok := f.Devices[p.Device]
		switch {
		case !ok || p.Host:
		case d.PeerMTU > p.SwitchMTU:
			found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("%s: the guest's adapter has MTU %d, its "+
				"switch %d: the guest's large frames are refused", p.label(), d.PeerMTU, p.SwitchMTU),
				Remedy: fmt.Sprintf("set the guest's MTU to %d, or raise the switch's mtu and that of its uplinks' "+
					"devices", p.SwitchMTU)})
		case d.MTU < p.SwitchMTU && d.PeerMTU == 0:
			found = append(found, Finding{Level: Note, Text: fmt.Sprintf("%s: device %s has MTU %d, its switch %d: "+
				"larger frames do not reach the guest", p.label(), p.Device, d.MTU, p.SwitchMTU),
				Remedy: fmt.Sprintf("ip link set %s mtu %d, and the same in the guest", p.Device, p.SwitchMTU)})
		case d.PeerMTU > 0 && min(d.MTU, d.PeerMTU) < p.SwitchMTU:
			found = append(found, Finding{Level: Note, Text: fmt.Sprintf("%s: the pair of %s has MTU %d, its switch "+
				"%d: larger frames do not reach the guest", p.label(), p.Device, min(d.MTU, d.PeerMTU), p.SwitchMTU),
				Remedy: fmt.Sprintf("ip link set %s mtu %d, and the same at the guest's end", p.Device, p.SwitchMTU)})
		}
	}
	return found
}

// owners finds other programs and devices that take or expect the frames of a device.
func owners(f Facts) []Finding {
	var found []Finding
	for _, u := range inUse(f) {
		if u.Master != "" {
			remedy := fmt.Sprintf("ip link set %s nomaster", u.Name)
			switch u.MasterKind {
			case "openvswitch", "ovs-system":
				remedy = "ovs-vsctl del-port " + u.Name
			case "bond", "team":
				remedy = fmt.Sprintf("use %s itself as the uplink's device, or ip link set %s nomaster", u.Master,
					u.Name)
			}
			found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("%s: device %s belongs to the %s %s: both "+
				"would switch its frames", u.label, u.Name, u.MasterKind, u.Master), Remedy: remedy})
		}
		if len(u.Upper) > 0 {
			found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("%s: %s on top of device %s: their frames "+
				"go to the switch now", u.label, list(u.Upper), u.Name),
				Remedy: "replace them by host ports in the VLANs' port groups (role: host)"})
		}
		if !u.uplink && len(u.Addresses) > 0 {
			found = append(found, Finding{Level: Note, Text: fmt.Sprintf("%s: the host has addresses on device %s "+
				"(%s), which nobody can reach", u.label, u.Name, list(u.Addresses)),
				Remedy: fmt.Sprintf("ip addr flush dev %s; the host's own place on a switch is a host port", u.Name)})
		}
	}
	return found
}

// offloads finds offloads that merge received frames, or drop tagged ones: a switch must have them off.
func offloads(f Facts) []Finding {
	var found []Finding
	for _, u := range inUse(f) {
		if u.Features["rx-lro"] {
			found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("%s: device %s joins received packets for "+
				"good (LRO): forwarded ones are damaged", u.label, u.Name),
				Remedy: fmt.Sprintf("ethtool -K %s lro off", u.Name)})
		}
		if u.Features["rx-gro-hw"] && u.uplink {
			found = append(found, Finding{Level: Note, Text: fmt.Sprintf("%s: device %s joins received packets in "+
				"hardware (rx-gro-hw), which some drivers cannot undo for guests", u.label, u.Name),
				Remedy: fmt.Sprintf("ethtool -K %s rx-gro-hw off, if guests see large packets lost", u.Name)})
		}
		if u.Features["rx-vlan-filter"] && u.uplink && !u.Promiscuous {
			found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("%s: device %s drops frames of VLANs it "+
				"does not know (rx-vlan-filter), and is not promiscuous", u.label, u.Name),
				Remedy: fmt.Sprintf(
					"ethtool -K %s rx-vlan-filter off; or let the agent run, which makes it promiscuous", u.Name)})
		}
	}
	return found
}

// programs finds other programs that see a device's frames. A program that runs before the switch is wrong whatever its
// origin and name: nobody can see from outside which frames it passes.
func programs(f Facts) []Finding {
	var found []Finding
	for _, u := range inUse(f) {
		if u.serves && u.Detached {
			found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("%s: the switch's program is not on device "+
				"%s: its frames pass the switch by", u.label, u.Name),
				Remedy: "wait a minute for the agent to attach it again, or restart the agent"})
		}
		found = append(found, before(u.label, u.Before, nil)...)
		for _, p := range u.Former {
			found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("%s: %s is on device %s, too, behind the "+
				"switch's (%s): frames for the host are switched twice", u.label, p.What(), u.Name, p.Hook),
				Remedy: p.Remedy()})
		}
		if len(u.Behind) > 0 {
			found = append(found, Finding{Level: Note, Text: fmt.Sprintf("%s: other programs on device %s: %s; they "+
				"see only the frames that the switch passes on to the host", u.label, u.Name, list(u.Behind)),
				Remedy: fmt.Sprintf("see them with: tc filter show dev %s ingress; bpftool net; to see a port's "+
					"frames: heddle capture", u.Name)})
		}
	}
	for _, u := range f.Uplinks {
		found = append(found, before(u.label(), u.Before, f.Devices[u.Device].Before)...)
	}
	for _, p := range f.Ports {
		found = append(found, before(p.label(), p.Before, f.Devices[p.Device].Before)...)
	}
	return found
}

// before returns the findings about programs that run before the switch, without those that are already known.
func before(label string, list, known []api.ProgramBefore) (found []Finding) {
	for _, p := range list {
		same := func(k api.ProgramBefore) bool { return k.Hook == p.Hook && k.Program == p.Program && k.Link == p.Link }
		if !slices.ContainsFunc(known, same) {
			found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("%s: %s", label, p), Remedy: p.Remedy()})
		}
	}
	return found
}

func managers(f Facts) []Finding {
	remedy := map[string]func(string) string{
		"NetworkManager": func(d string) string { return "nmcli device set " + d + " managed no" },
		"systemd-networkd": func(d string) string {
			return "a .network file for " + d +
				" with Unmanaged=yes in [Link]"
		},
	}
	var found []Finding
	for _, u := range inUse(f) {
		if u.Manager != "" {
			found = append(found, Finding{Level: Note, Text: fmt.Sprintf("%s: %s configures device %s, and may set "+
				"it down or give it addresses", u.label, u.Manager, u.Name), Remedy: remedy[u.Manager](u.Name)})
		}
	}
	return found
}

// hostInterfaces finds subnets in which the host has two interfaces: its answers leave by only one of them.
func hostInterfaces(f Facts) []Finding {
	names := make([]string, 0, len(f.Devices))
	for name := range f.Devices {
		names = append(names, name)
	}
	slices.Sort(names)
	var found []Finding
	hosts := 0
	for _, p := range f.Ports {
		d, ok := f.Devices[p.Device]
		if !p.Host || !ok {
			continue
		}
		hosts++
		for _, name := range names {
			if with := sharedSubnet(d, f.Devices[name]); name != d.Name && with != "" {
				found = append(found, twoInterfaces(p, d, f.Devices[name], with))
			}
		}
	}
	if f.Forwarding && hosts > 1 {
		found = append(found, Finding{Level: Note, Text: "the host routes between its interfaces " +
			"(net.ipv4.ip_forward): guests of one segment reach others through its host ports",
			Remedy: "if it is not meant to: sysctl -w net.ipv4.ip_forward=0, or filter it"})
	}
	return found
}

func twoInterfaces(p Port, d, other Device, subnet string) Finding {
	level, more := Note, ""
	if d.StrictReversePath || other.StrictReversePath {
		level, more = Wrong, ", and what arrives by the other is dropped (rp_filter)"
	}
	return Finding{Level: level, Text: fmt.Sprintf("%s: %s and %s are both in %s: the host answers by one of them%s",
		p.label(), d.Name, other.Name, subnet, more),
		Remedy: fmt.Sprintf("take the address off %s; or, to keep both: sysctl -w net.ipv4.conf.all.rp_filter=2 and "+
			"policy routing", other.Name)}
}

// sharedSubnet returns a subnet in which both have an address, "" if there is none. Link-local subnets are ignored,
// because they are everywhere.
func sharedSubnet(a, b Device) string {
	for _, x := range a.Addresses {
		for _, y := range b.Addresses {
			p, err1 := netip.ParsePrefix(x)
			q, err2 := netip.ParsePrefix(y)
			if err1 != nil || err2 != nil || p.Addr().IsLinkLocalUnicast() || p.Addr().IsLoopback() {
				continue
			}
			if p.Masked().Overlaps(q.Masked()) {
				return p.Masked().String()
			}
		}
	}
	return ""
}
