package devices

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"

	"heddle/internal/binding"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Fact returns the state of a device. The state of a veth's other end is used if it can be seen: its going down is
// reported at once, while the loss of carrier may follow a second later.
func Fact(d hostdev.Device) plan.Fact {
	f := plan.Fact{Up: d.Up(), MTU: d.MTU}
	if d.Peer.Seen {
		f.Up = f.Up && d.Peer.AdminUp
		f.MTU = min(f.MTU, d.Peer.MTU)
	}
	return f
}

// PortFact adds what the owner's adapter shows (D1, D2). A tap's owner cannot be seen.
func PortFact(d hostdev.Device) plan.Fact {
	f := Fact(d)
	if d.Peer.Seen {
		f.SeenMAC = d.Peer.MAC
		f.Promiscuous = plan.AsksNo
		if d.Peer.Promiscuous {
			f.Promiscuous = plan.AsksYes
		}
	}
	return f
}

// UplinkFact adds the device's own MAC (S96).
func UplinkFact(d hostdev.Device) plan.Fact {
	f := Fact(d)
	f.DeviceMAC, f.HostTraffic = d.MAC, d.HostTraffic
	return f
}

// Attachment returns how frames reach the owner: directly into the other network namespace if there is one (K13).
func Attachment(d hostdev.Device) binding.Attachment {
	return binding.Attachment{Ifindex: d.Index, PeerRedirect: d.Kind == hostdev.Veth && d.Peer.Elsewhere}
}

// Unusable returns why a device cannot serve in the role; none if it can.
func Unusable(d hostdev.Device, role spec.Role) problem.Problem {
	switch {
	case d.Name == "lo":
		return problem.Of(problem.Loopback)
	case strings.HasPrefix(d.Alias, "heddle/") && strings.HasPrefix(d.Name, switchEndPrefix):
		return problem.Problem{Code: problem.SwitchEnd, Device: d.Name, Peer: d.Alias}
	case !memberOf(d).None():
		return memberOf(d)
	case role == spec.Host && d.Shared:
		return problem.Problem{Code: problem.SharedDevice, Device: d.Name, Kind: d.Driver}
	case role == spec.Host && d.NotEthernet:
		return problem.Problem{Code: problem.NotEthernet, Device: d.Name, Kind: cmp.Or(d.Driver, "point-to-point")}
	case role == spec.VNIC && d.Kind == hostdev.Other && d.Driver == "vlan":
		return problem.Problem{Code: problem.VLANDevice, Device: d.Name}
	case role == spec.VNIC && d.Kind == hostdev.Other:
		kind := d.Driver
		if kind == "" {
			kind = "physical"
		}
		return problem.Problem{Code: problem.WrongDevice, Device: d.Name, Kind: kind}
	}
	return problem.Problem{}
}

// memberOf returns why a device that is a member of another device cannot be used: the other device takes its frames. A
// VRF does not.
func memberOf(d hostdev.Device) problem.Problem {
	m := d.Master
	if m == (hostdev.Master{}) || m.Driver == "vrf" {
		return problem.Problem{}
	}
	is := problem.Problem{Code: problem.DeviceMember, Device: d.Name, Peer: m.Name, Kind: m.Driver}
	switch m.Driver {
	case "bond", "team":
		is.Code = problem.BondMember
	case "bridge":
		is.Code = problem.BridgeMember
	}
	return is
}

// DerivedMAC returns the MAC of a host interface for which none is configured: locally administered, and the same for
// the same port at every start.
func DerivedMAC(id plan.PortID, place string) plan.MAC {
	h := sha256.Sum256([]byte("heddle host port\x00" + place + "\x00" + id.Switch + "\x00" + id.Name))
	m := plan.MAC(h[:6])
	m[0] = m[0]&^1 | 2
	return m
}

const switchEndPrefix = "sw-"

// SwitchEnd returns the name of the switch's end of a host interface's pair: recognisable, at most 15 bytes, and the
// same at every start.
func SwitchEnd(device string) string {
	if len(switchEndPrefix)+len(device) <= hostdev.NameMax {
		return switchEndPrefix + device
	}
	h := sha256.Sum256([]byte(device))
	return fmt.Sprintf("%s%s%x", switchEndPrefix, strings.ToValidUTF8(device[:hostdev.NameMax-len(switchEndPrefix)-4],
		""), h[:2])
}

// AliasPrefix returns the beginning of the alias of every device that the agent of that name makes.
func AliasPrefix(agent string) string { return "heddle/" + agent + "/" }

// TunnelAlias returns the alias of the device made for a switch's tunnel.
func TunnelAlias(agent, sw string) string { return "heddle-tunnel/" + agent + "/" + sw }

// Alias returns the alias of the device made for a port.
func Alias(agent string, id plan.PortID) string { return AliasPrefix(agent) + id.String() }
