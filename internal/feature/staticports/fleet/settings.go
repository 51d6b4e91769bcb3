package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	"heddle/internal/controller/inventory"
	"heddle/internal/platform/store"
	"heddle/internal/spec/known"
)

// settingsFit refuses settings for static ports that there are not, or that are in another port group.
func settingsFit(after *inventory.Inventory, objects []store.Object) error {
	settings, err := after.Settings()
	if err != nil || len(settings) == 0 {
		return err
	}
	groups := map[string]string{}
	for _, o := range objects {
		ports, err := store.DecodePorts(&o)
		if err != nil {
			return err
		}
		for _, p := range ports {
			groups[p.ID] = p.Group
		}
	}
	all := slices.Collect(maps.Keys(groups))
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(settings)) {
		want := settings[id].Switch + "/" + settings[id].PortGroup
		switch group, there := groups[id]; {
		case !there:
			lines = append(lines, fmt.Sprintf("ports[%s].id: there is no static port %s%s (heddle port static list)",
				id,
				id, known.Names{Owner: "port group " + want, All: inGroup(all, groups, want)}.Instead(id)))
		case group != want:
			lines = append(lines, fmt.Sprintf("ports[%s]: static port %s belongs to port group %s, not to %s", id, id,
				group, want))
		}
	}
	if len(lines) > 0 {
		return connect.NewError(connect.CodeInvalidArgument, strings.Join(lines, "\n"))
	}
	return nil
}

// inGroup are the ids of the ports of a port group.
func inGroup(all []string, groups map[string]string, group string) (list []string) {
	for _, id := range all {
		if groups[id] == group {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}
