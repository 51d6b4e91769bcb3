package api

import (
	"fmt"
	"strings"
)

// ProgramBefore is a program of somebody else on a port's or uplink's device that sees frames before the switch's
// program does: it may consume them, change them, or pass them to another destination.
type ProgramBefore struct {
	Switch string `json:"switch"`
	// Port or Uplink is the one that has the device.
	Port   string `json:"port,omitempty"`
	Uplink string `json:"uplink,omitempty"`
	Device string `json:"device"`
	// Hook is where it runs: "ingress", "egress" (tcx), or "xdp".
	Hook string `json:"hook"`
	// Name is the program's name; "" if the agent may not ask the kernel for it.
	Name string `json:"name,omitempty"`
	// Program is the kernel's id of the program, Link that of its attachment, 0 if it has none.
	Program uint32 `json:"program"`
	Link    uint32 `json:"link,omitempty"`
	// Agent is the Heddle agent that owns the program, "" for others.
	Agent string `json:"agent,omitempty"`
}

// What describes the program: "program spy (id 12, link 34)".
func (p ProgramBefore) What() string {
	what := "program"
	if p.Hook == HookXDP {
		what = "XDP program"
	}
	if p.Name != "" {
		what += " " + p.Name
	}
	if p.Agent != "" {
		what += " of agent " + p.Agent
	}
	if p.Link == 0 {
		return fmt.Sprintf("%s (id %d)", what, p.Program)
	}
	return fmt.Sprintf("%s (id %d, link %d)", what, p.Program, p.Link)
}

// String returns the consequence for the port.
func (p ProgramBefore) String() string {
	return fmt.Sprintf("%s runs before the switch on device %s (%s): frames may bypass the switch's policies", p.What(),
		p.Device, p.Hook)
}

// Remedy returns how to remove it from the device.
func (p ProgramBefore) Remedy() string {
	if p.Agent != "" {
		return fmt.Sprintf("a device has one switch: take it out of agent %s's configuration, or %s", p.Agent,
			p.Command())
	}
	return "if it is not meant to be there: " + p.Command() + ""
}

// Command removes it from the device; if only its owner should do that, Command shows who owns it.
func (p ProgramBefore) Command() string {
	switch {
	case p.Agent != "":
		return "heddle down --agent " + p.Agent
	case p.Hook == HookXDP:
		return fmt.Sprintf("ip link set %s xdp off", p.Device)
	case p.Link != 0:
		return fmt.Sprintf("bpftool link detach id %d", p.Link)
	}
	return fmt.Sprintf("bpftool prog show id %d", p.Program)
}

// HookXDP is the hook of programs that run before those of tcx.
const HookXDP = "xdp"

// Before describes the programs before the switch in one line, "" for none.
func Before(list []ProgramBefore) string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.String()
	}
	return strings.Join(texts, "; ")
}
