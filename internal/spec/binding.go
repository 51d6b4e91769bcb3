package spec

// Binding says how ports of a port group come to their owners.
type Binding string

// The kinds of ports.
const (
	// Ephemeral ports are made when a guest connects and end when it disconnects. They need no controller.
	Ephemeral Binding = "ephemeral"
	// Static ports are a fixed number, each bound to one adapter of one VM until it is released.
	Static Binding = "static"
	// Elastic ports are static ones whose number grows when all are bound.
	Elastic Binding = "elastic"
)

// PortCount is how many static ports a port group has.
type PortCount struct {
	// Number of static ports; of an elastic group it is what the group begins with.
	Number int `yaml:"number,omitempty" json:"number,omitzero"`
	// Limit is how far an elastic group grows.
	Limit int `yaml:"limit,omitempty" json:"limit,omitzero"`
}

// Numbers of static ports of a port group.
const (
	// DefaultStaticPorts is the number where none is given.
	DefaultStaticPorts = 8
	// MaxStaticPorts is the largest number, and the limit of an elastic group where none is given.
	MaxStaticPorts = 65536
)

// HasStaticPorts reports whether ports of the group are bound to adapters.
func (g *PortGroup) HasStaticPorts() bool { return g.Binding == Static || g.Binding == Elastic }

// StaticPorts is how many static ports the group begins with, and how many it may have; 0 for an ephemeral one.
func (g *PortGroup) StaticPorts() (number, limit int) {
	if !g.HasStaticPorts() {
		return 0, 0
	}
	if number = g.Ports.Number; number == 0 {
		number = DefaultStaticPorts
	}
	switch {
	case g.Binding == Static:
		limit = number
	case g.Ports.Limit > 0:
		limit = g.Ports.Limit
	default:
		limit = MaxStaticPorts
	}
	return number, limit
}

// Serves reports whether a host with these labels may serve the port group.
func (g *PortGroup) Serves(labels map[string]string) bool { return fits(g.Labels, labels) }

// fits reports whether all that is asked for is among the labels.
func fits(asked, labels map[string]string) bool {
	for k, v := range asked {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}
