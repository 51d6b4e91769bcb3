package spec

import "go.yaml.in/yaml/v4"

// Format writes the configuration in its canonical form: two spaces of indentation, fields in the order of the types,
// nothing that is not set, no comments. Parse reads it back to an equal Config; two configurations that are written
// differently and mean the same to the reader have the same form, so that a diff of the forms shows what changes.
func Format(cfg *Config) ([]byte, error) { return yaml.Dump(cfg) }

// Warnings are the things a valid configuration asks for that this version accepts and does not do, one line each.
func (c *Config) Warnings() []string {
	v := newValidator(c)
	var lines []string
	warn := func(a at, p *Policy) {
		if p.Monitoring.IPFIX != nil && *p.Monitoring.IPFIX {
			a = a.field("monitoring").field("ipfix")
			lines = append(lines, v.where(a)+a.show+": true: kept, but this version exports no flow records yet")
		}
	}
	for i := range c.Switches {
		s := &c.Switches[i]
		a := at{}.field("switches").item(i, s.Name)
		warn(a.field("defaults"), &s.Defaults)
		for j := range s.PortGroups {
			warn(a.field("portGroups").item(j, s.PortGroups[j].Name), &s.PortGroups[j].Policy)
		}
	}
	for i := range c.Ports {
		warn(at{}.field("ports").item(i, c.Ports[i].Name), &c.Ports[i].Policy)
	}
	return lines
}
