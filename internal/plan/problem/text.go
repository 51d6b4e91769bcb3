package problem

import (
	"fmt"
	"time"

	"heddle/internal/spec/printable"
)

// Text returns the state as a sentence for people, "" for none. The text of an unknown code is the code.
func (p Problem) Text() string {
	for _, of := range []func(Problem) string{Problem.ofDevice, Problem.ofMember, Problem.ofMonitor, Problem.ofGuest,
		Problem.ofLoop, Problem.ofUplink, Problem.ofLACP} {
		if text := of(p); text != "" {
			return text
		}
	}
	return string(p.Code)
}

// String returns the text, for logs.
func (p Problem) String() string { return p.Text() }

func (p Problem) ofDevice() string {
	switch p.Code {
	case NoDevice:
		return "no device is bound to it on this host"
	case DeviceMissing:
		if p.Peer != "" {
			return fmt.Sprintf("%s is another name of device %s, and only a device's first name counts here", p.Device,
				p.Peer)
		}
		return fmt.Sprintf("there is no device %s; it is connected when it appears", p.Device)
	case OwnerAwaited:
		return fmt.Sprintf("device %s, which its VM had, is gone, and a later device of that name may be another "+
			"VM's: it is connected when the VM's hypervisor connects it again, as at the VM's next start; if the VM "+
			"is gone: heddle port disconnect %s", p.Device, printable.ShellWord(p.Peer))
	case DeviceNotTaken:
		return fmt.Sprintf("device %s cannot be taken", p.Device) + after(": ", p.Detail)
	case DeviceInUse:
		return fmt.Sprintf("port %s cannot have device %s on this host: %s; say which device its guest gets here "+
			"(--device)", p.Peer, printable.Text(p.Device), p.Detail)
	case DeviceFailed, HostInterface, AttachFailed, NoEndpoint, EndpointShared:
		return p.failed()
	case LowMTU:
		if p.Other != "" {
			return p.lowEndpoint()
		}
		return fmt.Sprintf("device %s has MTU %d, below the %d of switch %s: raise it (ip link set %s mtu %d)",
			p.Device, p.Have, p.Want, p.Peer, p.Device, p.Want)
	case DeviceRenamed, DeviceMoved:
		return p.ofMadeDevice()
	case IPv6Off:
		return fmt.Sprintf("IPv6 is switched off on %s (sysctl net.ipv6.conf.%s.disable_ipv6), so that it lacks its "+
			"IPv6 addresses: switch it on (sysctl -w net.ipv6.conf.%s.disable_ipv6=0), or take them out of the port",
			p.Device, p.Device, p.Device)
	case AttachQueued:
		return "its device waits to be attached; each takes the kernel some 10 ms"
	case LinkDown:
		if p.Kind == UplinkKind {
			return "its device is down or has no carrier"
		}
		return "its device, or the guest's end of it, is down or has no carrier"
	case LinkSetDown:
		return fmt.Sprintf("libvirt has set the link of its adapter down: set it up (virsh domif-setlink %s %s up)",
			printable.ShellWord(p.Peer), printable.ShellWord(p.Device))
	case RunsBefore:
		return "programs of somebody else see its frames before the switch does" + after(": ", p.Detail)
	}
	return ""
}

// lowEndpoint says that what has an endpoint is too small for the tunnel. The agent sets the MTU of host ports, so that
// of one is raised in the file.
func (p Problem) lowEndpoint() string {
	if p.Kind == PathKind {
		host := ""
		if p.Device != "" {
			host = " of host " + p.Device
		}
		return fmt.Sprintf("packets of up to %d bytes reach the endpoint %s%s, %d less than the %d that packets of "+
			"switch %s need in the tunnel: raise the MTU of that host's device and of the network between, or lower "+
			"mtu: of the switch by %d", p.Have, p.Other, host, p.Want-p.Have, p.Want, p.Peer, p.Want-p.Have)
	}
	text := fmt.Sprintf("endpoint %s: device %s has MTU %d, %d below the %d that packets of switch %s need in the "+
		"tunnel: ", p.Other, p.Device, p.Have, p.Want-p.Have, p.Want, p.Peer)
	if p.Kind != "" {
		return text + fmt.Sprintf("set mtu: %d at switch %s, whose host port it is (and there, if the port has one of "+
			"its own)", p.Want, p.Kind)
	}
	return text + fmt.Sprintf("raise it (ip link set %s mtu %d)", p.Device, p.Want)
}

// ofMadeDevice says where a device is that the agent made under another name or elsewhere.
func (p Problem) ofMadeDevice() string {
	switch {
	case p.Code == DeviceMoved:
		return fmt.Sprintf("interface %s was moved into another network namespace: this host has none of its "+
			"addresses; move it back (ip -n NAMESPACE link set %s netns 1)", p.Device, p.Device)
	case p.Detail != "":
		return fmt.Sprintf("interface %s was renamed to %s, and its name can't be given back: %s", p.Device, p.Peer,
			p.Detail)
	}
	return fmt.Sprintf("interface %s was renamed to %s, and another device is called %s by now: give that one another "+
		"name, then the interface gets its own back", p.Device, p.Peer, p.Device)
}

// failed returns the error text of whatever failed, if it is known.
func (p Problem) failed() string {
	if p.Detail != "" {
		return p.Detail
	}
	return map[Code]string{NoEndpoint: "not every end of the tunnel is here",
		DeviceFailed: "its device can't be made ready", HostInterface: "its interface can't be made",
		AttachFailed:   "its device can't be attached",
		EndpointShared: "another host has an endpoint's address, too"}[p.Code]
}

// ofMember: the device can't be used as intended because of another one.
func (p Problem) ofMember() string {
	switch p.Code {
	case Loopback:
		return "lo is the loopback device: it has no wire to switch"
	case SwitchEnd:
		return fmt.Sprintf("device %s is the switch's end of a host port's interface (%s): it is connected already",
			p.Device, p.Peer)
	case BondMember:
		return fmt.Sprintf("device %s is a member of %s %s: use %s as the uplink's device, or take %s out of it (ip "+
			"link set %s nomaster)",
			p.Device, p.Kind, p.Peer, p.Peer, p.Device, p.Device)
	case BridgeMember:
		return fmt.Sprintf("device %s is in bridge %s: take it out (ip link set %s nomaster), a device has one switch",
			p.Device, p.Peer, p.Device)
	case DeviceMember:
		return fmt.Sprintf("device %s is a member of device %s: take it out, a device has one switch", p.Device, p.Peer)
	case VLANDevice:
		return fmt.Sprintf("device %s is a VLAN interface: make the device under it an uplink, and set the VLAN at "+
			"the port group (vlan: {access: ID}); "+
			"a vNIC is a veth or a tap (how-to/attach/uplinks.md of the documentation)", p.Device)
	case SharedDevice:
		return fmt.Sprintf("device %s is a %s device, which gets frames for its own MAC alone: guests would be "+
			"reached by broadcasts only; make the device under it the uplink's", p.Device, p.Kind)
	case NotEthernet:
		return fmt.Sprintf("device %s is a %s device, which carries no Ethernet frames: an uplink is a network card, "+
			"a bond or a VLAN interface", p.Device, p.Kind)
	case WrongDevice:
		return fmt.Sprintf("device %s is a %s device: a vNIC is a veth or a tap; a physical device is an uplink",
			p.Device, p.Kind)
	}
	return ""
}

func (p Problem) ofMonitor() string {
	what := map[Code]string{
		MonitorMissing:    "is not there: start QEMU with -qmp unix:PATH,server=on,wait=off",
		MonitorUnserved:   "is not served: its QEMU has ended",
		MonitorForbidden:  "may not be opened",
		MonitorSilent:     "does not answer: a monitor serves one program at a time, so give QEMU one for Heddle alone",
		MonitorFlood:      "sends far more than a monitor has to say: its QEMU is broken, or not QEMU",
		MonitorClosed:     "closed the connection",
		MonitorUnreadable: "gave no answer that could be read",
		AdapterAmbiguous:  "shows several adapters: give the id of the one behind this port as nic",
		AdapterUnknown:    "does not show the adapter: it must be a virtio-net card, and nic its id",
	}[p.Code]
	if what == "" {
		return ""
	}
	return fmt.Sprintf("what its guest made of the adapter is not known: QEMU monitor %q %s", p.Device, what)
}

func (p Problem) ofGuest() string {
	switch p.Code {
	case DuplicateMAC:
		return fmt.Sprintf("its adapter has the MAC %s of port %s: give one of them another, or set mac", p.MAC, p.Peer)
	case RivalGuest:
		return fmt.Sprintf("the guest of port %s runs with the same MAC %s, and gets what is sent to it: stop one of "+
			"the two guests", p.Peer, p.MAC)
	case GuestUnsure:
		if p.Detail != "" {
			return p.Detail
		}
		return "whether its guest runs here is not known yet"
	case GuestArrives:
		return "its guest is to arrive by a migration" + after(": ", p.Detail)
	case GuestLeft:
		return "its guest has left by a migration" + after(": ", p.Detail)
	case GuestOverdue:
		return fmt.Sprintf("%s. Nothing has come from it since %s; when it runs here, say so: heddle port activate %s",
			Problem{Code: GuestArrives, Detail: p.Detail}.Text(), p.Since.Format(time.TimeOnly),
			printable.ShellWord(p.Peer))
	}
	return ""
}

func (p Problem) ofLoop() string {
	if p.Code != LoopSeen && p.Code != LoopProbed {
		return ""
	}
	text := "blocked"
	if !p.Since.IsZero() {
		text += " since " + p.Since.Format(time.DateTime)
	}
	text += " because of a loop" + after(": ", p.Detail)
	if p.Code == LoopSeen {
		return text + ". It comes back when one of these devices is gone"
	}
	return fmt.Sprintf("%s. It is tried again by itself; at once with \"heddle port unblock %s\"", text,
		printable.ShellWord(p.Peer))
}

// Cause describes the loop for which a port is blocked, as the continuation of other sentences. For other states it is
// the text.
func (p *Problem) Cause() string {
	switch {
	case p == nil:
		return ""
	case p.Code != LoopSeen && p.Code != LoopProbed:
		return p.Text()
	case p.Detail == "":
		return "a loop goes through it"
	}
	return p.Detail
}

func (p Problem) ofUplink() string {
	switch p.Code {
	case NoUplink:
		if p.Kind == "tunnel" {
			return fmt.Sprintf("the tunnel of its overlay segment can't be used: heddle uplink show %s says why",
				p.Peer)
		}
		return "none of the uplinks that its teaming names can be used" + after(": ", p.Peer)
	case Drained:
		return "it is drained" + p.setBy("ports use other uplinks, and what arrives is accepted")
	case UplinkBlocked:
		return "it is blocked" + p.setBy("nothing passes in either direction")
	case UpDelay:
		return fmt.Sprintf("its link came back: it is used again once it has stayed up for %v", p.For)
	case Flapping:
		return fmt.Sprintf("its link went down more than %d times within a minute: it is used again once it has "+
			"stayed up for %v", p.Want, p.For)
	case BeaconsLost:
		return fmt.Sprintf("%d rounds of beacons lost: no beacon of another uplink arrives on it, and none of its "+
			"own on another", p.Want)
	case BeaconsDeaf:
		return fmt.Sprintf("%d rounds of beacons lost: no beacon of another uplink arrives on it", p.Want)
	case STPDiscards:
		return fmt.Sprintf("spanning tree: bridge %s at the other end does not forward by this link yet", p.Peer)
	case StormOutside:
		return p.storm()
	case BeaconsUnheard:
		return fmt.Sprintf("%d rounds of beacons lost: its beacons arrive on no other uplink", p.Want)
	}
	return ""
}

// setBy returns what it means that an uplink is drained or blocked, who did that, and how to undo it; "" if it is not
// known who did.
func (p Problem) setBy(meaning string) string {
	switch {
	case p.Peer == "":
		return ""
	case p.Since.IsZero():
		return " by the configuration file: " + meaning
	}
	return fmt.Sprintf(" by command since %s: %s (heddle uplink restore %s)", p.Since.Local().Format(time.DateTime),
		meaning, printable.ShellWord(p.Peer))
}

func (p Problem) ofLACP() string {
	switch p.Code {
	case LACPNoCarrier:
		return "lacp: no carrier"
	case LACPNoPartner:
		return "lacp: no partner"
	case LACPNoPartnerYet:
		return "lacp: no partner yet"
	case LACPSingleOther:
		return "lacp: no partner; " + p.Peer + " is used as a single link"
	case LACPLoop:
		return "lacp: it hears this host itself: the link is a loop"
	case LACPSilent:
		return "lacp: partner silent"
	case LACPWaiting:
		return "lacp: waiting for the other members"
	case LACPNotInSync:
		return "lacp: partner not in sync"
	case LACPNotReady:
		return "lacp: partner takes no frames yet"
	case LACPIndividual:
		return "lacp: the partner takes the link as an individual one"
	case LACPOtherPartner:
		return fmt.Sprintf("lacp: partner %s key %d is not that of the LAG (%s key %d)", p.Peer, p.Have, p.Other,
			p.Want)
	case LACPWithoutLAG:
		return fmt.Sprintf("lacp: the other end speaks it (%s key %d), and the uplink is in no LAG", p.Peer, p.Have)
	case LACPNoSocket:
		if p.Detail != "" {
			return "lacp: " + p.Detail
		}
		return "lacp: it can't be spoken on its device"
	}
	return ""
}

// storm says what a storm of the physical network is made of.
func (p Problem) storm() string {
	text := fmt.Sprintf("the physical network has a storm: %d broadcasts a second arrive", p.Have)
	if p.Want > 0 {
		return text + fmt.Sprintf(", and %d frames a second come back that this host has sent: it has a loop", p.Want)
	}
	return text
}

func after(mark, text string) string {
	if text == "" {
		return ""
	}
	return mark + text
}
