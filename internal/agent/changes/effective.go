package changes

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// leftOut are the values of an object's fields that the file leaves out, by path: built-in defaults, or inherited
// values.
type leftOut map[string]string

// value returns the effective value of an object's field; "" for none. A VLAN policy is inherited as a whole.
func (o object) value(path string) string {
	own := o.own()
	if v, ok := own[path]; ok {
		return v
	}
	if strings.HasPrefix(path, vlanPath) && own.hasVLAN() {
		if _, trunk := own[vlanPath+"trunk"]; trunk && path == vlanPath+"outer" {
			return "802.1q"
		}
		return ""
	}
	return o.leftOut[path]
}

const vlanPath = "vlan."

func (o object) own() leftOut {
	m := make(leftOut, len(o.fields))
	for _, f := range o.fields {
		m[f.path] = f.value
	}
	return m
}

func (l leftOut) hasVLAN() bool {
	for path := range l {
		if strings.HasPrefix(path, vlanPath) {
			return true
		}
	}
	return false
}

// below returns what the next level inherits: o completed with the values of l.
func (l leftOut) below(o leftOut) leftOut {
	m := maps.Clone(l)
	if o.hasVLAN() {
		maps.DeleteFunc(m, func(path, _ string) bool { return strings.HasPrefix(path, vlanPath) })
	}
	maps.Copy(m, o)
	return m
}

// sameValue reports whether two texts of a field mean the same: durations may be written in several ways.
func sameValue(path, a, b string) bool {
	if a == b || !isDuration(path) {
		return a == b
	}
	da, errA := time.ParseDuration(a)
	db, errB := time.ParseDuration(b)
	return errA == nil && errB == nil && da == db
}

// unitOf returns the unit of a numeric field, "" for other fields.
func unitOf(path string) string {
	if f, policy := plan.FieldOf(strings.TrimPrefix(path, "defaults.")); policy {
		return f.Counts()
	}
	if isDuration(path) {
		return plan.UnitSeconds
	}
	return ""
}

func isDuration(path string) bool {
	if f, policy := plan.FieldOf(strings.TrimPrefix(path, "defaults.")); policy {
		return f.Kind == plan.KindDuration
	}
	return path == "upDelay" || strings.HasSuffix(path, "FlowTimeout") || strings.HasSuffix(path, "templates.every")
}

// builtInPolicy returns the policy of ports for which no level sets anything; values that depend on the switch are
// taken from it.
func builtInPolicy(s *spec.Switch) leftOut {
	m := leftOut{}
	for _, f := range plan.Fields() {
		if f.Kind != plan.KindVLAN {
			m[f.Path] = f.BuiltIn(s)
		}
	}
	m[vlanPath+"none"] = "true"
	return m
}

// ofSwitch returns the values of a switch's own fields when they are left out, given the values of its policy.
func ofSwitch(policy leftOut) leftOut {
	m := leftOut{
		"kind": string(spec.Distributed), "mtu": strconv.Itoa(spec.DefaultMTU), "upDelay": spec.DefaultUpDelay.String(),
		"discovery.lldp": string(spec.LLDPListen), "healthCheck": "false",
		"checks.reversePath": "true", "checks.reversePathPromiscuous": "true", "checks.blockGuestBPDU": "true",
	}
	for path, v := range ofIPFIX() {
		m["ipfix."+path] = v
	}
	for path, v := range policy {
		m["defaults."+path] = v
	}
	return m
}

// ofIPFIX returns the values of a switch's ipfix settings when they are left out.
func ofIPFIX() leftOut {
	return leftOut{
		"observationDomainId": "0", "samplingRate": "0", "internalFlowsOnly": "false", "biflow": "false",
		"activeFlowTimeout": spec.DefaultActiveFlowTimeout.String(),
		"idleFlowTimeout":   spec.DefaultIdleFlowTimeout.String(),
		"templates.every":   spec.DefaultTemplatesEvery.String(),
		"templates.packets": strconv.Itoa(spec.DefaultTemplatePackets),
		"maxFlows":          strconv.Itoa(spec.DefaultMaxFlows),
	}
}

// ofUplink returns the values of an uplink's fields when they are left out.
func ofUplink(s *spec.Switch) leftOut {
	m := leftOut{"vlans": "[0-4094]", "blocked": "false"}
	for _, f := range plan.Fields() {
		if f.OfUplinks {
			m[f.Path] = f.BuiltIn(s)
		}
	}
	return m
}

// ofPort returns the values of a port's fields when they are left out, given its port group's policy.
func ofPort(p spec.Port, mtu int, policy leftOut) leftOut {
	m := maps.Clone(policy)
	if m == nil {
		m = leftOut{}
	}
	m["role"] = string(spec.VNIC)
	if p.Role == spec.Host {
		m["device"], m["mtu"] = p.Name, strconv.Itoa(mtu)
	}
	return m
}
