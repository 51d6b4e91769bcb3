package spec

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Ranges and defaults of the values a configuration holds.
const (
	MinMTU     = 1280 // bytes of layer 3, what IPv6 needs (RFC 8200 section 5)
	MaxMTU     = 9000
	DefaultMTU = 1500
	// MaxMACs is the largest learning limit of a port, and the default.
	MaxMACs       = 4096
	MinAgeing     = time.Second
	MaxAgeing     = 24 * time.Hour
	DefaultAgeing = 10 * time.Minute
	// DefaultUpDelay and MaxUpDelay bound how long a link has to stay up.
	DefaultUpDelay = 100 * time.Millisecond
	MaxUpDelay     = 30 * time.Minute
	// MaxStormRate is the largest rate of storm control, in frames per second; bursts are measured in time.
	MaxStormRate      = 1_000_000
	MinStormBurst     = 10 * time.Millisecond
	MaxStormBurst     = 2 * time.Second
	DefaultStormBurst = time.Second
	// MaxLAGMembers is the largest number of uplinks in a LAG (C5).
	MaxLAGMembers  = 32
	MaxName        = 63 // bytes
	maxDeviceName  = 15 // bytes, the kernel's IFNAMSIZ without its final zero
	maxVLAN        = 4094
	maxAddressList = 64 // addresses of one host port
	// MaxGuardAddresses is the largest number of addresses and prefixes that a port's owner may use under an address
	// guard.
	MaxGuardAddresses = 64
)

// VLANRange is the ids Lo to Hi, both included and within 0–4094; 0 stands for untagged frames.
type VLANRange struct{ Lo, Hi uint16 }

// ParseVLANRange reads an id, "10", or a range, "10-20". The error says what would be right.
func ParseVLANRange(s string) (VLANRange, error) {
	los, his, isRange := strings.Cut(s, "-")
	if !isRange {
		his = los
	}
	lo, ok1 := decimal(strings.TrimSpace(los))
	hi, ok2 := decimal(strings.TrimSpace(his))
	switch {
	case !ok1 || !ok2:
		return VLANRange{}, fmt.Errorf(`not a VLAN id such as 10 or a range such as "10-20"`)
	case lo < 0 || lo > maxVLAN || hi < 0 || hi > maxVLAN:
		return VLANRange{}, fmt.Errorf("out of range: VLAN ids here are 0–4094, 0 for untagged frames")
	case lo > hi:
		return VLANRange{}, fmt.Errorf("the range is reversed: write %d-%d", hi, lo)
	}
	return VLANRange{uint16(lo), uint16(hi)}, nil
}

// AgeingTime is the ageing time the policy sets, and whether it sets one that can be read.
func (l MACLearning) AgeingTime() (time.Duration, bool) {
	d, err := time.ParseDuration(l.Ageing)
	return d, err == nil && d >= MinAgeing && d <= MaxAgeing
}

// BurstTime is the burst the policy sets, and whether it sets one that can be read.
func (s StormControl) BurstTime() (time.Duration, bool) {
	d, err := time.ParseDuration(s.Burst)
	return d, err == nil && d >= MinStormBurst && d <= MaxStormBurst
}

// ActualUpDelay is how long an uplink's link has to stay up before it is used again: what is set, or the default.
func (s *Switch) ActualUpDelay() time.Duration {
	d, err := time.ParseDuration(s.UpDelay)
	if err != nil {
		return DefaultUpDelay
	}
	return d
}

// ActualMTU is the MTU the switch has, in bytes of layer 3: what is set, or the default.
func (s *Switch) ActualMTU() int {
	if s.MTU == 0 {
		return DefaultMTU
	}
	return s.MTU
}

// ActualKind is the kind the switch has: what is set, or distributed.
func (s *Switch) ActualKind() Kind {
	if s.Kind == "" {
		return Distributed
	}
	return s.Kind
}

// ActualRole is the role the port has: what is set, or vnic.
func (p *Port) ActualRole() Role {
	if p.Role == "" {
		return VNIC
	}
	return p.Role
}

// ActualDevice is the name of the port's device: what is set, for a host port by default the port's name, else "".
func (p *Port) ActualDevice() string {
	if p.Device == "" && p.ActualRole() == Host {
		return p.Name
	}
	return p.Device
}

// ActualOwner is the guest that the port belongs to: what is set, or how the name of a vnic begins that is made of the
// guest's and the adapter's, as vm1/eth0 is. "" where neither says.
func (p *Port) ActualOwner() string {
	switch i := strings.LastIndexByte(p.Name, '/'); {
	case p.ActualRole() == Host:
		return ""
	case p.Owner == "" && i > 0:
		return p.Name[:i]
	}
	return p.Owner
}

// Categories are the policies that a port group may let its ports set for themselves, in the order in which they are
// shown.
func Categories() []string {
	return []string{"blocked", "vlan", "security", "teaming", "monitoring", "stormControl"}
}

// Allows reports whether a single port may set a category of policies for itself.
func (o Overrides) Allows(category string) bool {
	switch category {
	case "blocked":
		return o.AllowsBlocked()
	case "vlan":
		return o.VLAN
	case "security":
		return o.Security
	case "teaming":
		return o.Teaming
	case "monitoring":
		return o.Monitoring
	case "stormControl":
		return o.StormControl
	}
	return false
}

// AllowsBlocked reports whether a single port may be blocked or unblocked; by default it may.
func (o Overrides) AllowsBlocked() bool { return o.Blocked == nil || *o.Blocked }

// Resets reports whether a port loses what it has set for itself when its owner disconnects (S10); by default it does.
func (o Overrides) Resets() bool { return o.ResetAtDisconnect == nil || *o.ResetAtDisconnect }

// checkName returns what is wrong with an object's name, "" for nothing.
func checkName(s string) string {
	first, _ := utf8.DecodeRuneInString(s)
	wordy := func(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
	odd := func(r rune) bool { return !wordy(r) && !strings.ContainsRune("._-/: ", r) }
	switch {
	case s == "":
		return "a name is needed"
	case len(s) > MaxName:
		return fmt.Sprintf("a name has at most %d bytes, this one has %d", MaxName, len(s))
	case strings.ContainsFunc(s, odd):
		return "a name is made of letters, digits, and . _ - / : and space inside"
	case !wordy(first) && first != '_':
		return "a name begins with a letter, a digit or _"
	case strings.HasSuffix(s, " "):
		return "a name does not end with a space"
	}
	return ""
}

// loopback is the name of the loopback device, in every network namespace.
const loopback = "lo"

// checkDevice returns what is wrong with a device name, "" for nothing (the kernel's own rule for names, and loopback).
func checkDevice(s string) string {
	odd := func(r rune) bool {
		return r == '/' || r == ':' || r == utf8.RuneError || !unicode.IsPrint(r) || unicode.IsSpace(r)
	}
	switch {
	case s == "":
		return "a device name is needed, or leave the field out"
	case len(s) > maxDeviceName:
		return fmt.Sprintf("a device name has at most %d bytes, this one has %d", maxDeviceName, len(s))
	case s == loopback:
		return "the loopback device leads to no guest and no network: name another, such as a guest's tap or a " +
			"network card"
	case s == "." || s == ".." || strings.ContainsFunc(s, odd):
		return "a device name holds no slash, colon, space or control character"
	}
	return ""
}

// checkMAC reads a port's MAC and says what is wrong with it, "" for nothing.
func checkMAC(s string) ([6]byte, string) {
	hw, err := net.ParseMAC(s)
	if err != nil || len(hw) != 6 {
		return [6]byte{}, "a MAC address is six bytes, such as 02:00:00:00:01:01"
	}
	mac := [6]byte(hw)
	switch {
	case mac == [6]byte{}:
		return mac, "a port cannot have the all-zero address: give it a unicast MAC"
	case mac[0]&1 == 1:
		return mac, "a port cannot have a multicast or broadcast address: the first byte must be even"
	}
	return mac, ""
}

// checkAddress reads an interface's address and says what is wrong with it, "" for nothing.
func checkAddress(s string) (netip.Prefix, string) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, "an address is written with its prefix length, such as 192.0.2.1/24 or 2001:db8::1/64"
	}
	if ip := p.Addr(); ip.IsUnspecified() || ip.IsMulticast() || ip.Is4In6() ||
		ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return p, "an interface's address is a unicast one, such as 192.0.2.1/24 or 2001:db8::1/64"
	}
	return p, ""
}

// ParseGuardAddress reads an address or a prefix that a port's owner may use. The error says what would be right.
func ParseGuardAddress(s string) (netip.Prefix, error) {
	var p netip.Prefix
	var err error
	if strings.Contains(s, "/") {
		p, err = netip.ParsePrefix(s)
	} else if a, e := netip.ParseAddr(s); e == nil && a.Zone() == "" {
		p = netip.PrefixFrom(a, a.BitLen())
	} else {
		err = fmt.Errorf("not an address")
	}
	a := p.Addr()
	switch {
	case err != nil:
		return p, fmt.Errorf("not an address such as 192.0.2.10 or 2001:db8::10, or a prefix such as 192.0.2.0/28")
	case p != p.Masked():
		return p, fmt.Errorf("write %s for the address, or %s for the prefix", a, p.Masked())
	case a.Is4In6():
		return p, fmt.Errorf("an IPv4 address is written as %s", a.Unmap())
	case p.Bits() > 0 && a.IsUnspecified(), a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return p, fmt.Errorf("nobody sends from this address: list unicast addresses")
	}
	return p, nil
}

// ValidName reports whether an object may have the name.
func ValidName(s string) bool { return checkName(s) == "" }

// ValidMAC reports whether a port may have the MAC.
func ValidMAC(s string) bool {
	_, msg := checkMAC(s)
	return msg == ""
}
