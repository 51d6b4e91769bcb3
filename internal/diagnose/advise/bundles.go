package advise

import (
	"fmt"
	"strings"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// lacpWithoutLAG finds uplinks in no LAG whose other ends are of a bundle (S141). Uplinks of one bundle, which have one
// partner and key, are one finding.
func lacpWithoutLAG(l *look) (found []api.Finding) {
	for _, sw := range l.Host.Plan.Switches {
		var order []string
		bundles := map[string][]*plan.Uplink{}
		for _, u := range sw.Uplinks {
			v := l.uplink[u.ID]
			if v == nil || v.ReasonCode != problem.LACPWithoutLAG {
				continue
			}
			if bundles[v.Reason] == nil {
				order = append(order, v.Reason)
			}
			bundles[v.Reason] = append(bundles[v.Reason], u)
		}
		for _, reason := range order {
			found = append(found, l.unbundled(sw, reason, bundles[reason]))
		}
	}
	return found
}

func (l *look) unbundled(sw *plan.Switch, reason string, members []*plan.Uplink) api.Finding {
	names := make([]string, len(members))
	for i, u := range members {
		names[i] = u.ID.Name
	}
	f := onUplink(members[0], "%s", reason)
	if len(members) > 1 {
		f = api.Finding{Switch: sw.Name, Sign: strings.Join(names, ", ") + ": " + reason}
	}
	f.Change = fmt.Sprintf("Make a LAG of them, `lags: [{name: lag1, uplinks: [%s]}]`, and name it in `teaming` in "+
		"their place; or take the ports of the physical switch out of the bundle, as a teaming without a LAG needs. "+
		"See lacp.md.", strings.Join(names, ", "))
	f.Command = l.command(members[0].ID, "uplink show")
	return f
}
