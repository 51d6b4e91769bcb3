package roles

import (
	"errors"
	"fmt"
	"strings"
)

// Scope is a part of the cluster: a port group, a switch with all its port groups, or all of the cluster.
type Scope struct {
	// Switch is the switch's name; "" for the whole cluster.
	Switch string `json:"switch,omitempty"`
	// PortGroup is the port group's name on that switch; "" for the whole switch.
	PortGroup string `json:"portGroup,omitempty"`
}

// Cluster is all of the cluster.
func Cluster() Scope { return Scope{} }

// GroupOf is the scope of a port group that is named SWITCH/GROUP.
func GroupOf(name string) Scope {
	sw, group, _ := strings.Cut(name, "/")
	return Scope{sw, group}
}

// ParseScope reads a scope as people write it: "" or "cluster", SWITCH, or SWITCH/GROUP.
func ParseScope(text string) (Scope, error) {
	if text == "" || text == "cluster" {
		return Cluster(), nil
	}
	s := GroupOf(text)
	if strings.HasSuffix(text, "/") && s.PortGroup == "" {
		return Scope{}, fmt.Errorf("%q: give SWITCH, SWITCH/GROUP or cluster", text)
	}
	return s, s.Check()
}

// mostNameBytes is how long a name of a switch or a port group is at most.
const mostNameBytes = 255

// Check returns an error for a scope that can be none.
func (s Scope) Check() error {
	switch {
	case s.Switch == "" && s.PortGroup != "":
		return errors.New("a port group is named with its switch: SWITCH/GROUP")
	case len(s.Switch) > mostNameBytes || len(s.PortGroup) > mostNameBytes:
		return fmt.Errorf("a name has at most %d bytes", mostNameBytes)
	case strings.ContainsAny(s.Switch+s.PortGroup, "\n\r\x00") || strings.Contains(s.Switch, "/"):
		return errors.New("that is no name of a switch or a port group")
	}
	return nil
}

// String names the scope for people.
func (s Scope) String() string {
	switch {
	case s.Switch == "":
		return "the whole cluster"
	case s.PortGroup == "":
		return "switch " + s.Switch
	}
	return "port group " + s.Switch + "/" + s.PortGroup
}

// Short is the scope as ParseScope reads it.
func (s Scope) Short() string {
	switch {
	case s.Switch == "":
		return "cluster"
	case s.PortGroup == "":
		return s.Switch
	}
	return s.Switch + "/" + s.PortGroup
}

// Covers reports whether the other scope is a part of this one.
func (s Scope) Covers(o Scope) bool {
	return s.Switch == "" || s.Switch == o.Switch && (s.PortGroup == "" || s.PortGroup == o.PortGroup)
}
