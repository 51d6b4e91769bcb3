package cli

// The groups of commands in the program's help. A command of a feature says its own.
const (
	GroupLook         = "Look"
	GroupChange       = "Change"
	GroupTroubleshoot = "Troubleshoot"
	GroupCluster      = "Cluster"
)
