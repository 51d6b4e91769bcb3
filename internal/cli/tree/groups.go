package tree

import (
	"github.com/spf13/cobra"

	"heddle/internal/cli"
)

// helpGroups orders the list of commands in the program's help by task.
func helpGroups(root *cobra.Command) {
	groups := []struct {
		title    string
		commands []string
	}{
		{cli.GroupLook, []string{"status", "switch", "port-group", "port", "uplink", "lag", "mac", "host-port", "show",
			"stats", "top", "flows", "events", "metrics"}},
		{cli.GroupChange, []string{"apply", "config", "confirm", "check"}},
		{cli.GroupTroubleshoot, []string{"advise", "trace", "capture", "explain", "doctor"}},
		{cli.GroupCluster, []string{"host", "definition", "rollout", "segment", "backup", "import", "export", "context",
			"login", "logout", "access", "audit", "ca"}},
		{"Run", []string{"agent", "down"}},
		{"Lab", []string{"lab", "bench"}},
		{"Hooks", []string{"cni", "libvirt-hook", "incus-follow"}},
		{"Other", []string{"completion", "help", "version"}},
	}
	in := map[string]string{}
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, name := range g.commands {
			in[name] = g.title
		}
	}
	for _, c := range root.Commands() {
		if c.GroupID == "" {
			c.GroupID = in[c.Name()]
		}
	}
	root.SetHelpCommandGroupID(in["help"])
	root.SetCompletionCommandGroupID(in["completion"])
}
