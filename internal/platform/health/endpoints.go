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

// Shared says of each host with which others it shares endpoints; of many, the first few are named.
func Shared(shared []SharedEndpoint) map[string][]string {
	by, more := map[string][]string{}, map[string]int{}
	for _, e := range shared {
		for _, host := range []string{e.A, e.B} {
			if len(by[host]) < mostNamed {
				by[host] = append(by[host], e.Of(host))
			} else {
				more[host]++
			}
		}
	}
	for host, n := range more {
		by[host] = append(by[host], fmt.Sprintf("and %d more endpoints of other hosts have an address of this one", n))
	}
	return by
}

// Endpoints says which hosts have the same endpoint of a tunnel.
func Endpoints(shared []SharedEndpoint) (found []api.HealthFinding) {
	for i, e := range shared {
		if i == mostNamed {
			found = append(found, finding("endpoints", api.HealthWrong, "more hosts have the same endpoint "+
				"address as another one", "heddle host list"))
			break
		}
		found = append(found, finding("endpoints", api.HealthWrong, fmt.Sprintf("hosts %s and %s have the same "+
			"endpoint address %s: guests of one of them are cut off from other hosts", e.A, e.B, e.Address),
			"give one of them another address; if one is gone for good: heddle host remove"))
	}
	return found
}
