package features

import (
	"heddle/cmd/heddle/features/hosts"
	"heddle/internal/cli/tree"
	probes "heddle/internal/feature/probes/cmd"
)

// All are the features of the program. A feature with commands has a line here.
func All() []tree.Feature {
	list := []tree.Feature{
		{Commands: tree.Commands(probes.New)},
	}
	for _, h := range hosts.All() {
		list = append(list, tree.Feature{Host: h})
	}
	return list
}
