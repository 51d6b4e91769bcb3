package spec

import "errors"

// A file that has no list of switches says nothing about them: it is empty, has only comments, "---" or null, or was
// cut behind "switches:". Such a file is more often truncated, or made of an empty template, than meant. So it takes
// nothing away where nobody can be asked, and a command asks. What is meant to have no switch says "switches: []".

// ListsSwitches reports whether the file has a list of switches, be it an empty one.
func (c *Config) ListsSwitches() bool { return c.Switches != nil }

// ListsSwitches reports whether the definition has a list of switches, be it an empty one.
func (d *Definition) ListsSwitches() bool { return d.Switches != nil }

// Empty reports whether the file says nothing at all.
func (c *Config) Empty() bool { return !c.ListsSwitches() && c.Host == HostSettings{} }

// TakesAwayUnasked reports whether the file would remove what the one before declared without saying so. before is nil
// where that is not known.
func (c *Config) TakesAwayUnasked(before *Config) bool {
	return c.Empty() || !c.ListsSwitches() && (before == nil || len(before.Switches)+len(before.Ports) > 0)
}

// ErrSaysNothing says that a configuration file has no list of switches, such as the one a package installs or one that
// was truncated. At a start and a reload nothing is removed because of it.
var ErrSaysNothing = errors.New("the configuration file has no list of switches, which removes nothing here: to " +
	"remove every switch, write \"switches: []\", or use heddle apply -f FILE --yes")

// DeclaresNothing reports whether a file is valid and declares neither a switch nor a port. Only the parser knows:
// words such as "name" may stand in a comment.
func DeclaresNothing(text []byte) bool {
	cfg, err := Parse("", text)
	return err == nil && len(cfg.Switches)+len(cfg.Ports) == 0
}

// DefinesNothing reports whether a definition is valid and has no switch.
func DefinesNothing(text []byte) bool {
	def, err := ParseDefinition("", text)
	return err == nil && len(def.Switches) == 0
}
