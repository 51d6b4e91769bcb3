package agent

import (
	"fmt"

	"heddle/internal/spec"
)

// pastWarnings name the devices that send and receive beside the switches of a configuration, on the devices of their ports and uplinks.
// The switches see only a part of their frames, so that a loop through one of them is not found.
func (l *looping) pastWarnings(cfg *spec.Config) (lines []string) {
	for _, b := range l.boundBy(cfg) {
		for _, p := range l.dev.Past(b.device) {
			if len(lines) == mostWarned {
				return append(lines, "and more devices send past the switches: see \"heddle doctor\"")
			}
			where := fmt.Sprintf("on top of device %s", p.Lower)
			if p.Master.Name != "" {
				where += fmt.Sprintf(", in %s %s", p.Master.Driver, p.Master.Name)
			}
			lines = append(lines, fmt.Sprintf("%s: %s %s (%s) sends past the switch, which applies no policy to it and finds no loop through it; "+
				"give its guests ports of the switch and remove it (ip link del %s)", b.id, p.Driver, p.Name, where, p.Name))
		}
	}
	return lines
}
