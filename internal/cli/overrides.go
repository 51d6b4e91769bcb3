package cli

import (
	"fmt"

	"heddle/internal/api"
	"heddle/internal/spec/printable"
)

// MostKept is how many of the ports that stay as commands have set them are listed.
const MostKept = 10

// Differing returns the overrides by which a port of the file differs from the file.
func Differing(p api.Port) (list []api.Override) {
	for _, o := range p.Overrides {
		if p.Origin == api.FromFile && !o.Value.Equal(o.File) {
			list = append(list, o)
		}
	}
	return list
}

// OverrideNotes describes briefly how a port differs from the file.
func OverrideNotes(p api.Port) (lines []string) {
	for _, o := range Differing(p) {
		if o.Field == "portGroup" && p.PortGroup == o.File.String() {
			lines = append(lines, fmt.Sprintf("port %s/%s: a command moved it to port group %s, which is gone; it is "+
				"in %s, as the file says", p.Switch, p.Name, o.Value, o.File))
		} else if o.Field == "portGroup" {
			lines = append(lines, fmt.Sprintf("port %s/%s: the file says port group %s; apply leaves it in %s",
				p.Switch,
				p.Name, o.File, o.Value))
		} else {
			lines = append(lines, fmt.Sprintf("port %s/%s: %s by command; apply leaves it so", p.Switch, p.Name, o))
		}
	}
	return lines
}

// OverrideText says what a command has set on a port, that applying the file leaves it so, and how to undo it.
func OverrideText(port string, o api.Override) string {
	blocked, is := o.Value.Any().(bool)
	name := printable.ShellWord(port)
	switch {
	case o.Field == "portGroup":
		return fmt.Sprintf("is in port group %s by command, the file says %s: apply leaves it there (heddle port move "+
			"%s --port-group %s takes it back)", o.Value, o.File, name, printable.ShellWord(o.File.String()))
	case o.Field == "blocked" && is && blocked:
		return fmt.Sprintf("is blocked by command: apply leaves it so (heddle port unblock %s lifts it)", name)
	case o.Field == "blocked" && is:
		return fmt.Sprintf("is unblocked by command: apply leaves it so (heddle port block %s blocks it)", name)
	}
	return fmt.Sprintf("has %s by command: apply leaves it so", o)
}
