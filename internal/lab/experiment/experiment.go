package experiment

import (
	"embed"
	"errors"
	"net/netip"
	"strings"

	"heddle/internal/lab/report"
	"heddle/internal/lab/scenario"
	"heddle/internal/spec/known"
)

// Experiment is a named series of measurements.
type Experiment struct {
	Name  string
	Title string
	Rows  []Row
	// Sources say what was published and where, a sentence each.
	Sources []string
	// Explained is the page of the documentation about it.
	Explained string
}

// Row is one measurement: traffic from one node to another in a scenario. Rows with the same *scenario.Scenario share
// the lab.
type Row struct {
	Name string
	// Setting says in a few words what is special about this row.
	Setting string
	// Figure is the published result in a word for the table; Published is the full text. Both are "" if nothing
	// was published.
	Figure, Published string
	Scenario          *scenario.Scenario
	From, To          Endpoint
	// SingleReply says that the policy of this row promises one reply per ping.
	SingleReply bool
	// Counted are the uplinks whose copies are counted.
	Counted []Uplink
	// Apart names ports of one host that must use different uplinks, or the row would measure something else.
	Apart []Port
}

// Budgets check the replies per ping that were counted in the row, on real traffic or in simulation, against its
// promise.
func (r *Row) Budgets(repliesPerPing float64) []report.Budget {
	if !r.SingleReply {
		return nil
	}
	return []report.Budget{report.Hold(r.Name+" replies per ping", repliesPerPing, report.None, report.Exactly, 1)}
}

// Endpoint is one end of the traffic: a node and its address there.
type Endpoint struct {
	Node    string
	Address netip.Addr
}

// Uplink names an uplink of a switch on a host.
type Uplink struct{ Host, Switch, Uplink string }

// Port names a port of a switch on a host.
type Port struct{ Host, Switch, Port string }

//go:embed scenarios/*.yaml
var scenarios embed.FS

// Scenario reads one of the scenarios that come with Heddle. Each call returns a new value.
func Scenario(name string) (*scenario.Scenario, error) {
	file := "scenarios/" + name + ".yaml"
	data, err := scenarios.ReadFile(file)
	if err != nil {
		return nil, unknown(known.Names{What: "built-in scenario", All: ScenarioNames()}.Missing(name) +
			"; a file is named as ./lab.yaml")
	}
	return scenario.Parse(file, data, nil)
}

// ScenarioNames lists the scenarios that come with Heddle.
func ScenarioNames() []string {
	entries, err := scenarios.ReadDir("scenarios")
	if err != nil {
		return nil // an embedded folder is always there
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Names lists the experiments.
func Names() []string { return []string{Nested, Placement} }

// ErrUnknown is wrapped when there is no scenario, experiment or row of that name.
var ErrUnknown = errors.New("unknown name")

// Find makes the named experiment.
func Find(name string) (*Experiment, error) {
	switch name {
	case Nested:
		return NestedMACLearning()
	case Placement:
		return PlacementPaths()
	}
	return nil, unknown(known.Names{What: "experiment", All: Names()}.Missing(name))
}

// Row finds a row by name, nil when there is none.
func (e *Experiment) Row(name string) *Row {
	for i := range e.Rows {
		if e.Rows[i].Name == name {
			return &e.Rows[i]
		}
	}
	return nil
}

// Select finds rows by name, as Pick does.
func (e *Experiment) Select(names []string) ([]*Row, error) {
	all := make([]*Row, len(e.Rows))
	for i := range e.Rows {
		all[i] = &e.Rows[i]
	}
	return Pick(e.Name, all, func(r *Row) string { return r.Name }, names)
}

// uplinks are all uplinks of a host, in the order of its configuration.
func uplinks(s *scenario.Scenario, host string) []Uplink {
	var all []Uplink
	for _, sw := range s.Host(host).Config.Switches {
		for _, u := range sw.Uplinks {
			all = append(all, Uplink{host, sw.Name, u.Name})
		}
	}
	return all
}
