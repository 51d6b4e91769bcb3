package experiment

import (
	"fmt"
	"slices"

	"heddle/internal/lab/scenario"
	"heddle/internal/spec"
)

// Nested is the name of the experiment with nested hosts.
const Nested = "nested-mac-learning"

// The names that the scenarios of the nested experiment use.
const (
	twoHostsScenario = "nested-two-hosts"
	secondUplink     = "uplink2"
)

// policy changes the physical hosts' switch for a row.
type policy func(*spec.Switch)

// NestedMACLearning compares promiscuous mode with MAC learning for traffic between two nested hosts: on one physical
// host with one and with two active uplinks, and on two hosts.
func NestedMACLearning() (*Experiment, error) {
	const twoHosts = "first article: minimal or no difference between promiscuous mode and MAC learning on two hosts"
	rows := []struct {
		name, setting, figure, published string
		scenario                         string
		policy                           policy
		single                           bool
	}{
		{"promiscuous-dual", "promiscuous, checks off", "(1) 1.16, (2) 0.177", "first article: 1.16 Gb/s; 3 DUP " +
			"in a ping of which it names neither uplinks nor policy; second article, which names neither the kind " +
			"of switch nor the uplinks: 0.177 Gb/s", Nested, promiscuous, false},
		{"promiscuous-single", "promiscuous, checks off", "(1) 9.82", "first article: 9.82 Gb/s", Nested,
			promiscuous, true},
		{"promiscuous-dual-checked", "promiscuous, checks on", "", "", Nested, promiscuousWithChecks, false},
		{"standard-promiscuous", "standard switch, promiscuous, check off", "", "", Nested, standardPromiscuous, false},
		{"mac-learning-dual", "MAC learning", "(1) 20.8, (2) 8.52", "first article: 20.8 Gb/s; second " +
			"article, which names neither the kind of switch nor the uplinks: 8.52 Gb/s", Nested, macLearning, false},
		{"mac-learning-single", "MAC learning", "(1) 20.8", "first article: 20.8 Gb/s", Nested, macLearning, true},
		{"two-hosts-promiscuous", "promiscuous, checks off", "(1) equal", twoHosts, twoHostsScenario, promiscuous,
			false},
		{"two-hosts-mac-learning", "MAC learning", "(1) equal", twoHosts, twoHostsScenario, macLearning, false},
	}
	e := &Experiment{Name: Nested, Title: "traffic between two nested hosts: promiscuous mode against MAC learning",
		Sources: nestedSources(), Explained: "explanation/nested-mac-learning.md"}
	for _, r := range rows {
		s, err := Scenario(r.scenario)
		if err != nil {
			return nil, err
		}
		row, err := nestedRow(s, r.policy, r.single)
		if err != nil {
			return nil, fmt.Errorf("row %s: %w", r.name, err)
		}
		row.Name, row.Setting, row.Figure, row.Published = r.name, r.setting, r.figure, r.published
		row.SingleReply = !duplicates(s)
		e.Rows = append(e.Rows, row)
	}
	return e, nil
}

// nestedRow applies the policy and, if single is set, a single uplink to every physical host of the scenario.
func nestedRow(s *scenario.Scenario, p policy, single bool) (Row, error) {
	row := Row{Scenario: s}
	for i := range s.Hosts {
		h := &s.Hosts[i]
		if len(h.NICs) > 0 {
			continue
		}
		sw := &h.Config.Switches[0]
		p(sw)
		if single {
			dropUplink(s, h.Name, sw, secondUplink)
		}
		if err := h.Config.Validate(); err != nil {
			return row, fmt.Errorf("host %s: %w", h.Name, err)
		}
		row.Counted = append(row.Counted, uplinks(s, h.Name)...)
		if len(h.Config.Ports) > 1 && !single {
			for _, port := range h.Config.Ports {
				row.Apart = append(row.Apart, Port{h.Name, sw.Name, port.Name})
			}
		}
	}
	row.From, row.To = hostEndpoint(s, "n1"), hostEndpoint(s, "n2")
	return row, nil
}

// duplicates reports whether a host of the scenario shows the articles' effect: promiscuous ports at both ends, two
// uplinks, and no check against frames that the physical switch sends back.
func duplicates(s *scenario.Scenario) bool {
	for _, h := range s.Hosts {
		sw := h.Config.Switches[0]
		check := sw.Checks.ReversePathPromiscuous
		if len(h.Config.Ports) > 1 && len(sw.Uplinks) > 1 && check != nil && !*check {
			return true
		}
	}
	return false
}

// hostEndpoint is a host's own first address.
func hostEndpoint(s *scenario.Scenario, host string) Endpoint {
	e := Endpoint{Node: host}
	if all := s.Host(host).Addresses(); len(all) > 0 {
		e.Address = all[0].Addr()
	}
	return e
}

// dropUplink removes an uplink from the switch and its cable from the scenario: if one of two uplinks were merely
// unused, frames that the physical switch floods would still come in on it.
func dropUplink(s *scenario.Scenario, host string, sw *spec.Switch, name string) {
	var device string
	sw.Uplinks = slices.DeleteFunc(sw.Uplinks, func(u spec.Uplink) bool {
		if u.Name == name {
			device = u.Device
		}
		return u.Name == name
	})
	if active := sw.Defaults.Teaming.Active; active != nil {
		left := slices.DeleteFunc(slices.Clone(*active), func(u string) bool { return u == name })
		sw.Defaults.Teaming.Active = &left
	}
	gone := scenario.End{Node: host, Device: device}
	s.Links = slices.DeleteFunc(s.Links, func(l scenario.Link) bool { return l.A == gone || l.B == gone })
}

func macLearning(*spec.Switch) {} // as in the scenario's file

// promiscuousWithChecks is promiscuous mode instead of MAC learning, with the reverse-path checks of a Heddle switch.
func promiscuousWithChecks(sw *spec.Switch) {
	for i := range sw.PortGroups {
		sw.PortGroups[i].Security = spec.Security{Promiscuous: spec.Accept, ForgedTransmits: spec.Accept}
	}
}

// promiscuous is promiscuous mode with the defaults of ESXi 8: the check for unicast copies is off.
func promiscuous(sw *spec.Switch) {
	promiscuousWithChecks(sw)
	off := false
	sw.Checks.ReversePathPromiscuous = &off
}

func standardPromiscuous(sw *spec.Switch) {
	promiscuous(sw)
	sw.Kind = spec.Standard
}

// vmEndpoint is a VM's first address.
func vmEndpoint(s *scenario.Scenario, name string) Endpoint {
	e := Endpoint{Node: name}
	for _, v := range s.VMs {
		if v.Name == name && len(v.Addresses) > 0 {
			e.Address = v.Addresses[0].Addr()
		}
	}
	return e
}
