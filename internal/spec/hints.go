package spec

import "fmt"

// Hints are policies of a valid configuration that work and that are seldom what somebody wants, one line each: choices
// between policies that contradict or double each other.
func (c *Config) Hints() []string {
	h := &hints{validator: newValidator(c)}
	for i := range c.Switches {
		s := &c.Switches[i]
		at := at{}.field("switches").item(i, s.Name)
		for k := range s.PortGroups {
			g := &s.PortGroups[k]
			h.look(at.field("portGroups").item(k, g.Name), s, securityOf(s, g, nil))
		}
		for k := range c.Ports {
			p := &c.Ports[k]
			if own := p.Security; p.Switch == s.Name && (own.Promiscuous != "" || own.ForgedTransmits != "" ||
				own.MACLearning.Enabled != nil) {
				h.look(at0("ports", k, p.Name), s, securityOf(s, s.groupOf(p), p))
			}
		}
	}
	return h.lines
}

type hints struct {
	*validator
	lines []string
}

// effective is what a level of the switch comes to, of the policies that hints are about.
type effective struct{ promiscuous, forged, learning bool }

func at0(list string, i int, name string) at { return at{}.field(list).item(i, name) }

func (s *Switch) groupOf(p *Port) *PortGroup {
	for i := range s.PortGroups {
		if s.PortGroups[i].Name == p.PortGroup {
			return &s.PortGroups[i]
		}
	}
	return nil
}

// securityOf is what a port group comes to, or a port of it.
func securityOf(s *Switch, g *PortGroup, p *Port) (e effective) {
	levels := []*Security{&s.Defaults.Security}
	if g != nil {
		levels = append(levels, &g.Security)
	}
	if p != nil {
		levels = append(levels, &p.Security)
	}
	for _, l := range levels {
		if l.Promiscuous != "" {
			e.promiscuous = l.Promiscuous == Accept
		}
		if l.ForgedTransmits != "" {
			e.forged = l.ForgedTransmits == Accept
		}
		if on := l.MACLearning.Enabled; on != nil {
			e.learning = *on
		}
	}
	return e
}

func (h *hints) look(a at, s *Switch, e effective) {
	say := func(format string, args ...any) {
		h.lines = append(h.lines, h.where(a)+a.show()+": "+fmt.Sprintf(format, args...))
	}
	if e.learning && !e.forged {
		say("MAC learning is on and forged transmits are rejected, so nothing is ever learned: set security: " +
			"{forgedTransmits: accept}, or leave learning off")
	}
	if e.learning && e.promiscuous {
		say("MAC learning is on and promiscuous mode is accepted: with learning a guest gets the frames of its " +
			"addresses without it; set security: {promiscuous: reject}")
	}
	if off := s.Checks.ReversePathPromiscuous; e.promiscuous && off != nil && !*off && s.choices() > 1 {
		say("promiscuous mode is accepted on a switch of several uplinks whose checks.reversePathPromiscuous is off: "+
			"what the physical network floods comes in up to %d times; leave the check on", s.choices())
	}
}

// choices is how many uplinks and LAGs the physical network can send the same frame by.
func (s *Switch) choices() int {
	n := len(s.Uplinks) + len(s.LAGs)
	for _, g := range s.LAGs {
		n -= len(g.Uplinks)
	}
	return n
}
