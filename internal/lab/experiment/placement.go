package experiment

import "fmt"

// Placement is the name of the experiment with the paths between two VMs.
const Placement = "placement-paths"

// PlacementPaths shows the path of the traffic between two VMs of one host in the four ways they can be placed.
func PlacementPaths() (*Experiment, error) {
	s, err := Scenario(Placement)
	if err != nil {
		return nil, err
	}
	e := &Experiment{Name: Placement, Title: "where traffic between two VMs of one host goes",
		Sources: []string{fmt.Sprintf("Article: %s.", thirdArticle())}}
	where := map[string]string{"leaves": " the host", "stays": " in the host"}
	for _, r := range []struct{ name, setting, figure, to string }{
		{"different-switch", "different switch, same VLAN", "leaves", "b1"},
		{"different-vlan", "same switch, different port group and VLAN, routed", "leaves", "a2"},
		{"same-port-group", "same switch, same port group", "stays", "a3"},
		{"same-vlan", "same switch, different port group, same VLAN", "stays", "a4"},
	} {
		e.Rows = append(e.Rows, Row{
			Name: r.name, Setting: r.setting, Figure: r.figure, Published: "third article: the traffic " + r.figure +
				where[r.figure], Scenario: s,
			From: vmEndpoint(s, "a1"), To: vmEndpoint(s, r.to), Counted: uplinks(s, "esx1"),
		})
	}
	return e, nil
}
