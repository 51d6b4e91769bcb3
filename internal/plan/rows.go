package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"heddle/internal/spec"
)

// Row is one effective value of a port in the words of the configuration file.
type Row struct {
	// Policy is the field: security.macLearning.limit.
	Policy string `json:"policy"`
	// Value is the effective value: reject, access 100, uplink1, uplink2.
	Value string `json:"value"`
	// From is the object that sets it: port group web, or built-in default.
	From string `json:"from"`
}

// Rows are all effective values of the port, in the order of the configuration file's documentation.
func (p *Port) Rows() []Row {
	e := p.Policy
	l, t, s := &e.Learning, &e.Teaming, &e.StormControl
	return []Row{
		row(p, "blocked", e.Blocked, yesNo),
		row(p, "vlan", e.VLAN, VLAN.String),
		row(p, "security.promiscuous", e.Promiscuous, answer),
		row(p, "security.macChanges", e.MACChanges, answer),
		row(p, "security.forgedTransmits", e.ForgedTransmits, answer),
		row(p, "security.loopDetection", e.LoopDetection, yesNo),
		row(p, "security.guestLinkControl", e.GuestLinkControl, names),
		row(p, "security.macLearning.enabled", l.Enabled, yesNo),
		row(p, "security.macLearning.limit", l.Limit, strconv.Itoa),
		row(p, "security.macLearning.limitPolicy", l.LimitPolicy, text),
		row(p, "security.macLearning.ageing", l.Ageing, duration),
		row(p, "security.macLearning.unicastFlooding", l.UnicastFlooding, yesNo),
		row(p, "teaming.policy", t.Policy, text),
		row(p, "teaming.active", t.Active, names),
		row(p, "teaming.standby", t.Standby, names),
		row(p, "teaming.failback", t.Failback, yesNo),
		row(p, "teaming.notifySwitches", t.NotifySwitches, yesNo),
		row(p, "teaming.failureDetection", t.FailureDetection, text),
		row(p, "monitoring.ipfix", e.Monitoring.IPFIX, yesNo),
		row(p, "monitoring.observe", e.Monitoring.Observe, text),
		row(p, "stormControl.broadcast", s.Broadcast, strconv.Itoa),
		row(p, "stormControl.multicast", s.Multicast, strconv.Itoa),
		row(p, "stormControl.unknownUnicast", s.UnknownUnicast, strconv.Itoa),
		row(p, "stormControl.burst", s.Burst, duration),
	}
}

func row[T any](p *Port, policy string, v Value[T], show func(T) string) Row {
	return Row{Policy: policy, Value: show(v.V), From: p.Origin(v.From)}
}

// Origin names the object of that level for this port: "switch lab", "port group web", "port vm1/eth0".
func (p *Port) Origin(l Level) string {
	switch l {
	case FromSwitch:
		return "switch " + p.ID.Switch
	case FromPortGroup:
		return "port group " + p.PortGroup
	case FromPort:
		return "port " + p.ID.Name
	}
	return string(l)
}

// String is the policy in the words of the configuration file: "none", "access 100", "trunk 0,10-20 outer 802.1ad".
func (w VLAN) String() string {
	switch {
	case w.Mode == VLANAccess:
		return fmt.Sprintf("access %d", w.ID)
	case w.Mode == VLANTrunk && w.AD:
		return "trunk " + w.Set.String() + " outer " + outerAD
	case w.Mode == VLANTrunk:
		return "trunk " + w.Set.String()
	}
	return "none"
}

// String is none, access or trunk.
func (m VLANMode) String() string {
	switch m {
	case VLANAccess:
		return "access"
	case VLANTrunk:
		return "trunk"
	}
	return "none"
}

// duration writes whole minutes and hours without the zeros: 10m, not 10m0s.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func yesNo(b bool) string { return strconv.FormatBool(b) }

func answer(accept bool) string {
	if accept {
		return string(spec.Accept)
	}
	return string(spec.Reject)
}

func text[T ~string](s T) string { return string(s) }

func names(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
