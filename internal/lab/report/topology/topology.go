package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/lab/report"
	"heddle/internal/lab/scenario"
	"heddle/internal/spec"
)

// Of returns the picture of a lab, with its description for readers who cannot see it.
func Of(s *scenario.Scenario) report.Picture {
	g := graphOf(s)
	g.layOut()
	title := "The lab " + s.Name
	if s.Title != "" {
		title += ": " + s.Title
	}
	return report.Picture{Title: title, SVG: g.svg(title + ". " + g.describe())}
}

// Distinct returns the pictures of labs, one for each name: labs of the same name differ only in what a row measures.
func Distinct(all ...*scenario.Scenario) (list []report.Picture) {
	var names []string
	for _, s := range all {
		if !slices.Contains(names, s.Name) {
			names, list = append(names, s.Name), append(list, Of(s))
		}
	}
	return list
}

// OfText returns the picture of a lab that is written in YAML; none for a text that is not a scenario, from which no
// lab can have been built.
func OfText(text string) []report.Picture {
	s, err := scenario.Parse("lab.yaml", []byte(text), nil)
	if err != nil {
		return nil
	}
	return []report.Picture{Of(s)}
}

// kind is the kind of a node, which determines how it is drawn.
type kind string

const (
	guest    kind = "VM"
	host     kind = "host"
	nested   kind = "nested host"
	physical kind = "physical switch"
	router   kind = "router"
)

// node is one box: a guest, a host, or a part of the physical network.
type node struct {
	name  string
	kind  kind
	lines []string // below the node's name
	level int      // 0 is the lowest
	at    float64  // of the middle, 0–1 of the width
}

// edge is a port or a cable between two nodes; low and high are the texts at its two ends.
type edge struct {
	from, to  *node
	low, high string
}

type graph struct {
	nodes []*node
	edges []edge
}

func graphOf(s *scenario.Scenario) *graph {
	g := &graph{}
	g.addHosts(s)
	g.addGuests(s)
	for i := range s.Switches {
		g.nodes = append(g.nodes, &node{name: s.Switches[i].Name, kind: physical,
			lines: []string{map[scenario.SwitchKind]string{scenario.Heddle: "a second Heddle"}[s.Switches[i].Kind]}})
	}
	for i := range s.Routers {
		g.addRouter(s, &s.Routers[i])
	}
	for _, l := range s.Links {
		a, b := g.node(l.A.Node), g.node(l.B.Node)
		if a == nil || b == nil {
			continue
		}
		g.edges = append(g.edges, edge{a, b, endText(s, l.A), endText(s, l.B)})
	}
	if rate := rateOf(s); rate != "" {
		for _, n := range g.nodes {
			if n.kind == physical {
				n.lines = append(n.lines, "links of "+rate)
			}
		}
	}
	return g
}

// rateOf returns the rate of all cables, "" if they differ or have none.
func rateOf(s *scenario.Scenario) string {
	for _, l := range s.Links {
		if l.Rate != s.Links[0].Rate || l.Rate == 0 {
			return ""
		}
	}
	if len(s.Links) == 0 {
		return ""
	}
	return report.BitsPerSecond.Format(float64(s.Links[0].Rate))
}

func (g *graph) node(name string) *node {
	for _, n := range g.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (g *graph) addHosts(s *scenario.Scenario) {
	for i := range s.Hosts {
		h := &s.Hosts[i]
		n := &node{name: h.Name, kind: host}
		if len(h.NICs) > 0 {
			n.kind = nested
		}
		for _, sw := range h.Config.Switches {
			n.lines = append(n.lines, fmt.Sprintf("switch %s (%s)", sw.Name, cmp.Or(sw.Kind, spec.Standard)))
		}
		for _, a := range h.Addresses() {
			n.lines = append(n.lines, a.Addr().String())
		}
		g.nodes = append(g.nodes, n)
	}
	for i := range s.Hosts {
		for _, nic := range s.Hosts[i].NICs {
			if below := g.node(nic.Host); below != nil {
				g.edges = append(g.edges, edge{from: g.node(s.Hosts[i].Name), to: below,
					low: nic.Device + ": " + portText(s, nic.Host, nic.Port)})
			}
		}
	}
}

// mostGuests is the largest number of guests of one host that are drawn one by one.
const mostGuests = 6

func (g *graph) addGuests(s *scenario.Scenario) {
	of := map[string]int{}
	for i := range s.VMs {
		v := &s.VMs[i]
		below := g.node(v.Host)
		if of[v.Host]++; of[v.Host] > mostGuests || below == nil {
			continue
		}
		n := &node{name: v.Name, kind: guest}
		for _, a := range v.Addresses {
			n.lines = append(n.lines, a.Addr().String())
		}
		g.nodes = append(g.nodes, n)
		g.edges = append(g.edges, edge{from: n, to: below, low: portText(s, v.Host, cmp.Or(v.Port, v.Name))})
	}
	for i := range s.Hosts {
		name := s.Hosts[i].Name
		if more := of[name] - mostGuests; more > 0 {
			n := &node{name: fmt.Sprintf("%d more", more), kind: guest, lines: []string{"on " + name}}
			g.nodes = append(g.nodes, n)
			g.edges = append(g.edges, edge{from: n, to: g.node(name)})
		}
	}
}

func (g *graph) addRouter(s *scenario.Scenario, r *scenario.Router) {
	n := &node{name: r.Name, kind: router}
	g.nodes = append(g.nodes, n)
	for _, f := range r.Interfaces {
		for _, a := range f.Addresses {
			n.lines = append(n.lines, a.Addr().String())
		}
		if f.OnPort() {
			n.kind = guest
			if below := g.node(f.Host); below != nil {
				g.edges = append(g.edges, edge{from: n, to: below,
					low: f.Device + ": " + portText(s, f.Host, f.Port)})
			}
		}
	}
}

// portText returns a port's port group with its VLAN.
func portText(s *scenario.Scenario, hostName, port string) string {
	c := s.Host(hostName).Config
	for _, p := range c.Ports {
		if p.Name != port {
			continue
		}
		text := p.PortGroup
		for i := range c.Switches {
			for _, g := range c.Switches[i].PortGroups {
				if c.Switches[i].Name == p.Switch && g.Name == p.PortGroup {
					text += vlanText(g.VLAN)
				}
			}
		}
		return text
	}
	return ""
}

func vlanText(v *spec.VLAN) string {
	switch {
	case v == nil || v.None:
		return ""
	case v.Access > 0:
		return fmt.Sprintf(", VLAN %d", v.Access)
	default:
		return ", trunk"
	}
}

// endText returns the text at a cable's end: the uplink that its device serves, or the device.
func endText(s *scenario.Scenario, e scenario.End) string {
	if h := s.Host(e.Node); h != nil {
		for _, sw := range h.Config.Switches {
			for _, u := range sw.Uplinks {
				if u.Device == e.Device {
					return fmt.Sprintf("%s (%s)", u.Name, e.Device)
				}
			}
		}
		return e.Device
	}
	return ""
}

// describe describes the picture in words.
func (g *graph) describe() string {
	var all []string
	for _, n := range g.nodes {
		if n.kind == guest {
			continue
		}
		var carries, leads []string
		for _, e := range g.edges {
			switch {
			case e.to == n && (e.from.kind == guest || e.from.kind == nested):
				carries = append(carries, e.from.name)
			case e.from == n && n.kind != nested:
				leads = append(leads, e.to.name)
			}
		}
		text := string(n.kind) + " " + n.name
		if len(carries) > 0 {
			text += " carries " + strings.Join(carries, ", ")
		}
		if len(leads) > 0 {
			text += map[bool]string{true: " and", false: ""}[len(carries) > 0] + " is cabled to " +
				strings.Join(leads, ", ")
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ") + "."
}

// svg draws the boxes over the lines between them.
func (g *graph) svg(description string) string { return g.drawing().SVG(description) }
