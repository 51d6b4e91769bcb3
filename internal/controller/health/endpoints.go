package health

import (
	"fmt"

	"heddle/internal/api"
)

// SharedEndpoint is an endpoint address that two hosts have.
type SharedEndpoint struct{ Address, A, B string }

// Of says it of one host.
func (e SharedEndpoint) Of(host string) string {
	other := e.A
	if host == e.A {
		other = e.B
	}
	return fmt.Sprintf("its endpoint address %s is host %s's as well: other hosts send to one of them alone; give one "+
		"of them another address", e.Address, other)
}

// Endpoints says which hosts have the same endpoint of a tunnel.
func Endpoints(shared []SharedEndpoint) (found []api.HealthFinding) {
	for i, e := range shared {
		if i == mostNamed {
			found = append(found, finding("endpoints", api.HealthWrong, fmt.Sprintf("%d more pairs of hosts have the "+
				"same endpoint address", len(shared)-i), "heddle host list"))
			break
		}
		found = append(found, finding("endpoints", api.HealthWrong, fmt.Sprintf("hosts %s and %s have the same "+
			"endpoint address %s: guests of one of them are cut off from other hosts", e.A, e.B, e.Address),
			"give one of them another address; if one is gone for good: heddle host remove"))
	}
	return found
}
