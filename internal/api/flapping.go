package api

import (
	"fmt"
	"strings"
)

// FlappingMAC is a MAC that is learned again and again, here and on other hosts.
type FlappingMAC struct {
	MAC     string `json:"mac"`
	Segment string `json:"segment"`
	// Times it was learned here within five minutes.
	Times     int                 `json:"times"`
	Elsewhere []FlappingElsewhere `json:"elsewhere"`
}

// FlappingElsewhere is another host that learns the MAC again and again.
type FlappingElsewhere struct {
	Host  string `json:"host"`
	Port  string `json:"port"`
	Times int    `json:"times"`
}

// String is for people: "02:… in VLAN 10 goes to and fro: 3 times learned here, 2 times on host esx2 (port vm9)".
func (m FlappingMAC) String() string {
	parts := []string{fmt.Sprintf("%d times learned here", m.Times)}
	for _, e := range m.Elsewhere {
		parts = append(parts, fmt.Sprintf("%d times on host %s (port %s)", e.Times, e.Host, e.Port))
	}
	return fmt.Sprintf("%s (VLAN %s) goes to and fro between hosts: %s", m.MAC, m.Segment, strings.Join(parts, ", "))
}
