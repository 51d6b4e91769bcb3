package memory

import (
	"slices"

	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks/lldp"
)

// Memory is part of the agent's state file; the names in JSON are the file's.
type Memory struct {
	// Assigned are the uplinks to which load-based teaming has moved ports.
	Assigned []Assignment `json:"assigned,omitzero"`
	// LAGs and LLDP are what was last announced to the physical network.
	LAGs []LAG      `json:"lags,omitzero"`
	LLDP []LLDPSaid `json:"lldp,omitzero"`
}

// Assignment is the uplink to which load-based teaming has moved a port.
type Assignment struct {
	ID     plan.PortID `json:"id"`
	Uplink string      `json:"uplink"`
}

// LLDPSaid is an advertisement that neighbours may remember, so that it can be withdrawn.
type LLDPSaid struct {
	ID      plan.PortID    `json:"id"`
	Chassis lldp.ChassisID `json:"chassis"`
	Port    lldp.PortID    `json:"port"`
}

// Assign gives a port an uplink, and replaces its previous one.
func (m *Memory) Assign(id plan.PortID, uplink string) {
	m.Assigned = slices.DeleteFunc(m.Assigned, func(a Assignment) bool { return a.ID == id })
	m.Assigned = append(m.Assigned, Assignment{id, uplink})
}

// AssignedTo returns the uplink assigned to a port, "" for none.
func (m *Memory) AssignedTo(p *plan.Port) string {
	for _, a := range m.Assigned {
		if a.ID == p.ID && MayHave(p, a.Uplink) {
			return a.Uplink
		}
	}
	return ""
}

// MayHave reports whether load-based teaming may give the port that uplink.
func MayHave(p *plan.Port, uplink string) bool {
	t := p.Policy.Teaming
	return t.Policy.V == spec.LoadBased && slices.Contains(t.Active.V, uplink)
}
