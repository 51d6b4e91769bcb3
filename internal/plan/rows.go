package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"heddle/internal/spec"
)

// Rows returns all effective values of the port, in the order of the table of policy fields.
func (p *Port) Rows() []Row {
	rows := make([]Row, len(policyFields))
	for i := range policyFields {
		f := &policyFields[i]
		rows[i] = Row{Policy: f.Path, Value: f.Value(p.Policy), Unit: f.Counts(), From: p.Origin(f.Level(p.Policy))}
	}
	return rows
}

// Origin returns the object of that level for this port.
func (p *Port) Origin(l Level) Source {
	switch l {
	case FromSwitch:
		return Source{l, p.ID.Switch}
	case FromPortGroup:
		return Source{l, p.PortGroup}
	case FromPort:
		return Source{l, p.ID.Name}
	}
	return Source{Level: l}
}

// String returns the policy in the words of the configuration file: "none", "access 100", "trunk 0,10-20 outer
// 802.1ad".
func (w VLAN) String() string {
	switch {
	case w.Mode == VLANAccess:
		return fmt.Sprintf("access %d", w.ID)
	case w.Mode == VLANTrunk && w.AD:
		return "trunk " + w.Set.String() + " outer " + outerAD
	case w.Mode == VLANTrunk:
		return "trunk " + w.Set.String()
	}
	return w.Mode.String()
}

// String is none, access or trunk.
func (m VLANMode) String() string {
	switch m {
	case VLANAccess:
		return "access"
	case VLANTrunk:
		return "trunk"
	case VLANUnknown:
		return "unknown"
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
