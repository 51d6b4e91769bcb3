package bypass

import (
	"fmt"

	"heddle/internal/agent/active"
	"heddle/internal/diagnose/advise"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Devices are those of a host.
type Devices interface {
	Device(name string) (hostdev.Device, bool, error)
	Past(d hostdev.Device) []hostdev.Past
}

// most bounds how many devices a warning lists.
const most = 16

// Warnings names the devices that send and receive past the switches of a configuration. The switches see only a part
// of their frames, so that a loop through such a device is not found.
func Warnings(dev Devices, cfg *spec.Config) (lines []string) {
	for _, b := range Bounds(dev, cfg) {
		for _, p := range dev.Past(b.Device) {
			if len(lines) == most {
				return append(lines, "and more devices send past the switches: see \"heddle doctor\"")
			}
			lines = append(lines, fmt.Sprintf("%s: %s %s (%s) sends past the switch, which applies no policy to it "+
				"and finds no loop through it; "+
				"give its guests ports of the switch and remove it (ip link del %s)", b.ID, p.Driver, p.Name,
				where(p), p.Name))
		}
	}
	return lines
}

func where(p hostdev.Past) string {
	if p.Master.Name == "" {
		return "on top of device " + p.Lower
	}
	return fmt.Sprintf("on top of device %s, in %s %s", p.Lower, p.Master.Driver, p.Master.Name)
}

// All returns the devices that send past the switches of a configuration, as advise describes them.
func All(dev Devices, cfg *spec.Config) (all []advise.Past) {
	for _, b := range Bounds(dev, cfg) {
		for _, p := range dev.Past(b.Device) {
			all = append(all, advise.Past{At: b.ID, Device: p.Name, Driver: p.Driver, Where: where(p)})
		}
	}
	return all
}

// Bounds returns the guests' ports and the uplinks of a configuration that have a device now.
func Bounds(dev Devices, cfg *spec.Config) (all []active.Bound) {
	add := func(sw, name, device string) {
		if d, ok, err := dev.Device(device); device != "" && ok && err == nil {
			all = append(all, active.Bound{ID: plan.PortID{Switch: sw, Name: name}, Device: d})
		}
	}
	for _, sw := range cfg.Switches {
		for _, u := range sw.Uplinks {
			add(sw.Name, u.Name, u.Device)
		}
	}
	for _, p := range cfg.Ports {
		if p.Role != spec.Host {
			add(p.Switch, p.Name, p.Device)
		}
	}
	return all
}
