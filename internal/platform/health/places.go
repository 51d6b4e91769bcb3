package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heddle/internal/api"
)

// places looks whether the controllers' majority depends on a single host: controllers may be VMs on the hosts that
// they serve.
func places(all []api.ControllerPlace) (found []api.HealthFinding) {
	const check = "places"
	on := map[string][]string{}
	for _, c := range all {
		if c.Host != "" {
			on[c.Host] = append(on[c.Host], c.Name)
		}
	}
	if len(on) == 0 || len(all) < 2 {
		return nil
	}
	majority := len(all)/2 + 1
	for _, host := range slices.Sorted(maps.Keys(on)) {
		names := on[host]
		if len(names) < 2 || len(all)-len(names) >= majority {
			continue
		}
		found = append(found, finding(check, api.HealthNote, fmt.Sprintf("%d of %d controllers are VMs on host %s "+
			"(%s): "+
			"with that host the majority is gone, and nothing can be changed", len(names), len(all), host,
			strings.Join(names, ", ")), "keep the controllers' VMs on different hosts, by a rule of the VM manager"))
	}
	if len(found) == 0 {
		found = append(found, fine(check, "the controllers that are VMs are on different hosts"))
	}
	return found
}
