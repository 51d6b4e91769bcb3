package removal

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"heddle/internal/agent/instance"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/host/hostnet"
)

// Removal is what Down removes.
type Removal struct {
	// Switches are the switches that Down removes, by name.
	Switches []RemovedSwitch `json:"switches"`
	// Interfaces are the host's own interfaces that Down removes, with their addresses.
	Interfaces []RemovedInterface `json:"interfaces"`
	// Connected are those, address and port, who are connected to this host by TCP by an address that goes.
	Connected []string `json:"connected"`
	// DryRun: nothing was removed.
	DryRun bool `json:"dryRun"`
	// Purged: the configuration, its history and the ports connected by command were deleted too.
	Purged bool `json:"purged"`
}

// RemovedSwitch is one switch that Down removes.
type RemovedSwitch struct {
	Name string `json:"name"`
	// Ports lose their connection. The devices of Uplinks are given back.
	Ports   []string `json:"ports"`
	Uplinks []string `json:"uplinks"`
}

// RemovedInterface is a host port's interface.
type RemovedInterface struct {
	Device    string   `json:"device"`
	Addresses []string `json:"addresses"`
}

// WhatDownRemoves returns what Down would remove, according to the agent's state; nothing is changed.
func WhatDownRemoves(p instance.Paths, name string) (*Removal, error) {
	if err := instance.CheckState(p, name); err != nil {
		return nil, api.NewError(api.Invalid, err.Error())
	}
	st, err := state.Peek(p.StateDir(name))
	if err != nil {
		return nil, err
	}
	r := removalOf(st)
	if sessions, err := (hostnet.Net{}).Sessions(); err == nil { // a kernel without tcp_diag does not say
		r.connected(sessions)
	}
	return r, nil
}

// connected notes whose connections end with the addresses.
func (r *Removal) connected(sessions []hostnet.Session) {
	for _, s := range sessions {
		if slices.ContainsFunc(r.Interfaces, func(i RemovedInterface) bool {
			return slices.ContainsFunc(i.Addresses, func(a string) bool {
				prefix, err := netip.ParsePrefix(a)
				return err == nil && prefix.Addr() == s.Local.Addr().Unmap()
			})
		}) {
			r.Connected = append(r.Connected, s.Remote.String())
		}
	}
}

func removalOf(st *state.State) *Removal {
	r := &Removal{Switches: []RemovedSwitch{}, Interfaces: []RemovedInterface{}, Connected: []string{}}
	for _, h := range st.Held {
		sw := r.of(h.ID.Switch)
		if h.Uplink {
			sw.Uplinks = append(sw.Uplinks, h.ID.Name)
		} else {
			sw.Ports = append(sw.Ports, h.ID.Name)
		}
	}
	for i := range r.Switches {
		slices.Sort(r.Switches[i].Ports)
		slices.Sort(r.Switches[i].Uplinks)
	}
	slices.SortFunc(r.Switches, func(a, b RemovedSwitch) int { return strings.Compare(a.Name, b.Name) })
	for _, pair := range st.Pairs {
		i := RemovedInterface{Device: pair.Host, Addresses: []string{}}
		for _, a := range pair.Put {
			i.Addresses = append(i.Addresses, a.String())
		}
		r.Interfaces = append(r.Interfaces, i)
	}
	return r
}

// of returns the entry of a switch, and makes it if it is missing.
func (r *Removal) of(name string) *RemovedSwitch {
	for i := range r.Switches {
		if r.Switches[i].Name == name {
			return &r.Switches[i]
		}
	}
	r.Switches = append(r.Switches, RemovedSwitch{Name: name, Ports: []string{}, Uplinks: []string{}})
	return &r.Switches[len(r.Switches)-1]
}

// Nothing reports whether no guest and not the host would notice the removal.
func (r *Removal) Nothing() bool { return len(r.Switches) == 0 && len(r.Interfaces) == 0 }

// mostListed is how many names one line lists.
const mostListed = 8

// Lines describes for an operator what is removed.
func (r *Removal) Lines() (lines []string) {
	for _, sw := range r.Switches {
		lines = append(lines, fmt.Sprintf("switch %s: %s; %s", sw.Name,
			listed(sw.Ports, "port loses its connection", "ports lose their connection"),
			listed(sw.Uplinks, "uplink is given back", "uplinks are given back")))
	}
	for _, i := range r.Interfaces {
		line := "host interface " + i.Device + " is removed"
		if len(i.Addresses) > 0 {
			line += ", and with it " + strings.Join(i.Addresses, ", ")
		}
		lines = append(lines, line)
	}
	if len(r.Connected) > 0 {
		lines = append(lines, listed(r.Connected, "connection to this host ends", "connections to this host end"))
	}
	return lines
}

func listed(names []string, one, many string) string {
	what := many
	if len(names) == 1 {
		what = one
	}
	text := fmt.Sprintf("%d %s", len(names), what)
	if len(names) == 0 {
		return text
	}
	more := ""
	if n := len(names) - mostListed; n > 0 {
		names, more = names[:mostListed], fmt.Sprintf(" and %d more", n)
	}
	return text + " (" + strings.Join(names, ", ") + more + ")"
}
