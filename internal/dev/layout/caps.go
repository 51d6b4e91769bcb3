package layout

import (
	"fmt"
	"slices"
)

// bound is how much there may be of something, and the larger ones that are there: their numbers only fall. A bound
// that is met by dressing is not met: where one is reached, the state is divided.
type bound struct {
	what   string // "methods"
	most   int
	larger map[string]int // by the name of what has more
	table  string         // the function of this package that has it
	remedy string
}

const here = "internal/dev/layout/caps.go"

// faults are the sentences about what has too much, and about numbers that could be lower.
func (b bound) faults(count map[string]int) (out []string) {
	for name, n := range count {
		limit, capped := b.larger[name]
		switch {
		case capped && n <= b.most:
			out = append(out, fmt.Sprintf("%s has %d %s: take it out of %s in %s", name, n, b.what, b.table, here))
		case capped && n > limit:
			out = append(out, fmt.Sprintf("%s has %d %s, and %d are agreed: %s", name, n, b.what, limit, b.remedy))
		case capped && n < limit:
			out = append(out, fmt.Sprintf("%s has %d %s by now: lower its number in %s in %s, which is %d", name, n,
				b.what, b.table, here, limit))
		case !capped && n > b.most:
			out = append(out, fmt.Sprintf("%s has %d %s, more than %d: %s", name, n, b.what, b.most, b.remedy))
		}
	}
	for name := range b.larger {
		if _, there := count[name]; !there {
			out = append(out, fmt.Sprintf("%s is in %s in %s, and there is no such thing: take it out", name, b.table,
				here))
		}
	}
	slices.Sort(out)
	return out
}

// methodsOfTypes bounds the methods that a type has itself.
func methodsOfTypes() bound {
	return bound{"methods", 45, nil, "methodsOfTypes", "find the part of it that has state of its own"}
}

// methodsOnState bounds the methods that work on one state, those of wrappers and of embedding types included.
func methodsOnState() bound {
	return bound{"methods that reach its state", 45, map[string]int{
		"internal/agent.shared":             353,
		"internal/agent/cluster.offering":   47,
		"internal/api.adapter":              54,
		"internal/api.clusterCalls":         51,
		"internal/api.moveCalls":            49,
		"internal/controller/rpc.Options":   128,
		"internal/controller/rpc.Server":    128,
		"internal/controller/rpc.fleet":     97,
		"internal/platform/store.Store":     55,
		"internal/dataplane.Kernel":         58,
		"internal/dataplane.locator":        65,
		"internal/dataplane.overlays":       102,
		"internal/diagnose/advise.Snapshot": 47,
		"internal/diagnose/trace.Host":      88,
		"internal/diagnose/trace.tracer":    87,
		"internal/model.run":                52,
		"internal/spec.validator":           79,
	}, "methodsOnState", "divide the state"}
}

// filesOfPackages bounds the files of a package.
func filesOfPackages() bound {
	return bound{"files", 40, map[string]int{
		"internal/agent":          76,
		"internal/api":            54,
		"internal/controller/rpc": 75,
		"internal/dataplane":      63,
	}, "filesOfPackages", "a part of it is a package of its own"}
}

// linesOfPackages bounds the lines of a package. Those above it may grow by as much as a repair needs, and no more:
// their numbers are rounded up to a hundred.
func linesOfPackages() bound {
	return bound{"hundreds of lines", 60, map[string]int{
		"internal/agent":          99,
		"internal/api":            69,
		"internal/controller/rpc": 97,
		"internal/dataplane":      92,
	}, "linesOfPackages", "a part of it is a package of its own"}
}

// linesOfFunctions bounds the lines of a function.
func linesOfFunctions() bound {
	return bound{"lines", 60, map[string]int{
		"internal/agent.commands.connectIncoming":        66,
		"internal/agent.start":                           62,
		"internal/agent/cluster.Client.talk":             81,
		"internal/agent/view.Source.Port":                63,
		"internal/cli.Locate":                            62,
		"internal/cli/agentcmd.New":                      61,
		"internal/cli/definition.newBackupImport":        65,
		"internal/cli/benchcmd.newBenchControlPlane":     82,
		"internal/cli/benchcmd.newBenchFlowExport":       62,
		"internal/cli/capture.New":                       61,
		"internal/cli/flows.newFlowsList":                61,
		"internal/cli/hosts.newHostJoin":                 62,
		"internal/cli/port.newPortConnect":               68,
		"internal/cli/stats.statsOne":                    61,
		"internal/controller.run":                        64,
		"internal/controller/rpc.Server.JoinHost":        64,
		"internal/dataplane/compile.Slots.Assign":        64,
		"internal/lab/bench/controlplane.reportOf":       77,
		"internal/lab/bench/controlplane.result.budgets": 66,
		"internal/lab/migration.measured.fields":         73,
		"internal/lab/traffic.sendCommand":               66,
	}, "linesOfFunctions", "a step of it is a function of its own"}
}

// touchesOfFields bounds how often the owners in a package touch each other's private fields. House rule: none.
func touchesOfFields() bound {
	return bound{"touches of another owner's private field", 0, map[string]int{
		"internal/agent":                  623,
		"internal/agent/captures":         17,
		"internal/agent/cluster":          39,
		"internal/agent/state":            5,
		"internal/agent/transport":        15,
		"internal/controller":             6,
		"internal/platform/access":        5,
		"internal/controller/proxy":       13,
		"internal/platform/access/signin": 23,
		"internal/platform/audit":         19,
		"internal/controller/backup":      2,
		"internal/platform/peers":         5,
		"internal/platform/pki":           4,
		"internal/controller/probes":      67,
		"internal/controller/rpc":         297,
		"internal/controller/segments":    70,
		"internal/platform/store":         79,
	}, "touchesOfFields", "hand the value over, or move the method to the owner"}
}
