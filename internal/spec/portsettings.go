package spec

import "strconv"

// PortSettings are what a definition sets for one static port, whichever adapter has it and on whichever host.
type PortSettings struct {
	// ID is the port's number, as "heddle port static list" shows it.
	ID string `yaml:"id" json:"id"`
	// Switch and PortGroup are those that the port belongs to.
	Switch    string `yaml:"switch" json:"switch"`
	PortGroup string `yaml:"portGroup" json:"portGroup"`
	// Name and Description are for people.
	Name        string `yaml:"name,omitempty" json:"name,omitzero"`
	Description string `yaml:"description,omitempty" json:"description,omitzero"`
	// Policy is what the port sets for itself, if the port group's overrides allow it (S9).
	Policy `yaml:",inline"`
}

// maxDescription is how long a description may be, in bytes.
const maxDescription = 255

// portSettings checks the settings of static ports. Whether there are such ports is for the controllers to say.
func (v *fleetValidator) portSettings(list []PortSettings) {
	ids := map[string]bool{}
	for i := range list {
		s := &list[i]
		a := at{}.field("ports").item(i, s.ID)
		switch {
		case !validPortID(s.ID):
			v.fault(a.field("id"), shown(s.ID), `the number of a static port is needed, such as "33": heddle port `+
				"static list shows them")
		case ids[s.ID]:
			v.fault(a.field("id"), shown(s.ID), "this port is listed already: list it once")
		}
		ids[s.ID] = true
		if s.Name != "" || v.written(a, "name") {
			v.name(a, s.Name)
		}
		if len(s.Description) > maxDescription {
			v.fault(a.field("description"), shown(s.Description), "at most %d bytes, this is %d", maxDescription,
				len(s.Description))
		}
		p := Port{Name: s.ID, Switch: s.Switch, PortGroup: s.PortGroup, Policy: s.Policy}
		k, g := v.attachment(a, &p)
		if k < 0 || g == nil {
			continue
		}
		if !g.HasStaticPorts() {
			v.fault(a.field("portGroup"), shown(s.PortGroup),
				"its ports are ephemeral, and have no numbers: set binding "+
					"there to static or elastic")
			continue
		}
		v.overrides(a, &p, g)
		sw := &v.cfg.Switches[k]
		v.policy(k, []level{{policy: &sw.Defaults, kind: "switch", name: sw.Name},
			{policy: &g.Policy, kind: "port group", name: g.Name},
			{at: a, policy: &s.Policy, kind: "port", name: s.ID}})
	}
}

// validPortID says whether the text can be the number of a static port.
func validPortID(id string) bool {
	n, err := strconv.ParseInt(id, 10, 64)
	return err == nil && n >= 0 && strconv.FormatInt(n, 10) == id
}
