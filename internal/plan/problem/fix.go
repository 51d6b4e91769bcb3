package problem

import (
	"fmt"

	"heddle/internal/spec/printable"
)

// Fix returns what an operator must do about the device of a port or uplink that is missing or can't serve, as a
// sentence.
func (p Problem) Fix() string {
	switch p.Code {
	case NoDevice:
		return "Bind a device to it."
	case DeviceMissing:
		if p.Peer != "" {
			return fmt.Sprintf("Write %s in place of %s.", p.Peer, p.Device)
		}
		return fmt.Sprintf("Make the device %s, or correct its name.", p.Device)
	case OwnerAwaited:
		return fmt.Sprintf("Start its VM, or disconnect the port if the VM is gone: heddle port disconnect %s.",
			printable.ShellWord(p.Peer))
	case DeviceRenamed:
		return fmt.Sprintf("Give %s its name back (ip link set %s name %s), after another device with that name has "+
			"another one.", p.Peer, p.Peer, p.Device)
	case DeviceMoved:
		return fmt.Sprintf("Move %s back into the network namespace of the agent.", p.Device)
	case IPv6Off:
		return fmt.Sprintf("Switch IPv6 on there (sysctl -w net.ipv6.conf.%s.disable_ipv6=0), or take the IPv6 "+
			"addresses out of the port.", p.Device)
	case SharedDevice:
		return fmt.Sprintf("Make the device under %s the uplink's.", p.Device)
	case Loopback, SwitchEnd, WrongDevice, NotEthernet:
		return "Name another device: a guest's veth or tap for a port, a network card or a bond for an uplink."
	case BondMember:
		return fmt.Sprintf("Make %s the uplink's device, or take %s out of it.", p.Peer, p.Device)
	case BridgeMember, DeviceMember:
		return fmt.Sprintf("Take %s out of %s: a device has one switch.", p.Device, p.Peer)
	case VLANDevice:
		return "Make the device under it an uplink, and set the VLAN at the port group."
	case LowMTU:
		if p.Kind == PathKind {
			return fmt.Sprintf("Raise the MTU of the network to %s, or lower that of switch %s.", p.Other, p.Peer)
		}
		return fmt.Sprintf("Raise the MTU of %s, or lower that of switch %s.", p.Device, p.Peer)
	case NoEndpoint:
		return fmt.Sprintf("Give this host the address that the tunnel names, or correct the endpoints of %s.",
			p.Device)
	case EndpointShared:
		return fmt.Sprintf("Give one of the hosts an address of its own, and correct the endpoints of %s there.",
			p.Device)
	case LinkSetDown:
		return fmt.Sprintf("Set the adapter's link up: virsh domif-setlink %s %s up.", printable.ShellWord(p.Peer),
			printable.ShellWord(p.Device))
	case AttachQueued:
		return "Wait until its device is attached."
	}
	return "Remove what keeps its device from being used; the agent tries again by itself."
}
