package agent

import (
	"fmt"

	"heddle/internal/diagnose/advise"
	"heddle/internal/host/hostdev"
	"heddle/internal/spec"
)

// pastWarnings names the devices that send and receive past the switches of a configuration, on the devices of their
// ports and uplinks. The switches see only a part of their frames, so that a loop through such a device is not found.
func (l *looping) pastWarnings(cfg *spec.Config) (lines []string) {
	for _, b := range l.boundBy(cfg) {
		for _, p := range l.dev.Past(b.device) {
			if len(lines) == mostWarned {
				return append(lines, "and more devices send past the switches: see \"heddle doctor\"")
			}
			lines = append(lines, fmt.Sprintf("%s: %s %s (%s) sends past the switch, which applies no policy to it "+
				"and finds no loop through it; "+
				"give its guests ports of the switch and remove it (ip link del %s)", b.id, p.Driver, p.Name,
				whereIs(p), p.Name))
		}
	}
	return lines
}

func whereIs(p hostdev.Past) string {
	if p.Master.Name == "" {
		return "on top of device " + p.Lower
	}
	return fmt.Sprintf("on top of device %s, in %s %s", p.Lower, p.Master.Driver, p.Master.Name)
}

// pastNow returns, in the loop, the devices that send past the switches, as advise describes them.
func (an *answers) pastNow() (all []advise.Past) {
	for _, b := range an.boundBy(an.Active().Config) {
		for _, p := range an.dev.Past(b.device) {
			all = append(all, advise.Past{At: b.id, Device: p.Name, Driver: p.Driver, Where: whereIs(p)})
		}
	}
	return all
}
