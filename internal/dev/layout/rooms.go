package layout

// Floor is how high a package stands: it imports packages of lower floors, and of its own room.
type Floor int

// The floors, from the words at the bottom to the program and its tests at the top.
const (
	Words Floor = iota
	Plans
	Kinds
	Answers
	Kernel
	Network
	Process
	Workshop
	Verbs
	Top
)

// titles describe the floors.
func titles() [Top + 1]string {
	return [...]string{
		Words:    "types that import nothing else of Heddle: what the user asks for, what C and Go share",
		Plans:    "effective policies, and codecs that know no policies",
		Kinds:    "types for devices, flows and observations; access to this machine",
		Answers:  "what a switch does, in plain Go, and the words in which it is reported",
		Kernel:   "the switch in the kernel, the explanation of what it does, and metering",
		Network:  "the conversation with the physical network",
		Process:  "one host's agent and what attaches guests to it; the controller",
		Workshop: "labs and measurements, and the check of a whole host",
		Verbs:    "the command line",
		Top:      "the program, its tests, and the tools of its development",
	}
}

// Rule is what holds for one package.
type Rule struct {
	Floor Floor
	// Pure packages reach neither the kernel, nor netlink, nor the network, also not through what they import, and
	// build on any system.
	Pure bool
}

// rules are those of every package by its path below the module. A package that is not here fails the test: a new one
// has to choose its floor.
func rules() map[string]Rule {
	all := map[string]Rule{}
	stand := func(f Floor, pure bool, packages ...string) {
		for _, p := range packages {
			all[p] = Rule{f, pure}
		}
	}
	stand(Words, true, "api", "api/heddle/agent/v1", "api/heddle/agent/v1/agentv1connect", "api/heddle/options/v1",
		"api/heddle/host/v1", "api/heddle/host/v1/hostv1connect",
		"api/heddle/controller/v1", "api/heddle/controller/v1/controllerv1connect",
		"internal/identity",
		"internal/spec", "internal/spec/known", "internal/spec/period", "internal/spec/printable",
		"internal/spec/yamltext", "internal/abi")
	stand(Plans, true, "internal/vsphere")
	stand(Plans, false, "internal/vsphere/live")
	stand(Words, false, "internal/abi/gen", "internal/capture/dissect", "internal/capture/filter",
		"internal/capture/pcapng")
	stand(Plans, true, "internal/plan", "internal/plan/problem", "internal/flow/ipfix", "internal/slice")
	stand(Plans, false, "internal/flow/ipfix/gen", "internal/flow/udpbatch")
	stand(Kinds, true, "internal/slice/fields",
		"internal/fabric", "internal/fabric/alike", "internal/fabric/benchmark", "internal/overlay",
		"internal/overlay/span",
		"internal/diagnose", "internal/flow", "internal/observe",
		"internal/observe/accounts", "internal/observe/event", "internal/observe/flapping",
		"internal/observe/recent",
		"internal/observe/sightings",
		"internal/observe/undone",
		"internal/host/qmp")
	stand(Kinds, false, "internal/host/domains", "internal/host/guest", "internal/host/hostdev",
		"internal/host/hostnet", "internal/host/hostroute", "internal/host/interrupt",
		"internal/host/keystore", "internal/host/netspace", "internal/host/ownfile",
		"internal/host/reach")
	stand(Answers, true, "internal/binding", "internal/fabric/wire", "internal/overlay/wire", "internal/api/wire",
		"internal/model",
		"internal/diagnose/reasons")
	stand(Answers, false, "internal/api", "internal/api/waitline")
	stand(Kernel, true, "internal/dataplane/compile", "internal/diagnose/across",
		"internal/diagnose/foresee", "internal/diagnose/trace")
	stand(Kernel, false, "internal/dataplane", "internal/diagnose/advise", "internal/diagnose/explain",
		"internal/diagnose/stats",
		"internal/flow/export", "internal/flow/meter", "internal/flow/metering")
	stand(Network, true, "internal/uplinks/announce", "internal/uplinks/beacon", "internal/uplinks/cdp",
		"internal/uplinks/lacp",
		"internal/uplinks/lldp", "internal/uplinks/loops",
		"internal/uplinks/memory", "internal/uplinks/storms", "internal/uplinks/stp",
		"internal/uplinks/teaming/failover",
		"internal/uplinks/teaming/loadbalance",
		"internal/uplinks/teaming/teams")
	stand(Network, false, "internal/uplinks", "internal/uplinks/linkproto", "internal/uplinks/wire")
	stand(Process, false, "internal/agent", "internal/agent/adopt", "internal/agent/adopt/adopttest",
		"internal/agent/captures", "internal/agent/changes", "internal/agent/devices",
		"internal/agent/bundle", "internal/agent/ferry",
		"internal/agent/instance", "internal/agent/metrics", "internal/agent/moves", "internal/agent/presence",
		"internal/agent/segments",
		"internal/agent/state",
		"internal/agent/supervise",
		"internal/agent/view", "internal/agent/cluster", "internal/attach/cni",
		"internal/attach/incus", "internal/attach/libvirt",
		"internal/controller", "internal/controller/access", "internal/controller/audit",
		"internal/controller/audit/export",
		"internal/controller/cmd",
		"internal/controller/metrics", "internal/controller/rpc", "internal/controller/store")
	stand(Process, false, "internal/controller/coalesced", "internal/controller/definition",
		"internal/controller/fault", "internal/controller/filling", "internal/controller/health",
		"internal/controller/peers",
		"internal/controller/probes", "internal/controller/segments", "internal/controller/snapshots")
	stand(Process, true, "internal/controller/access/defined", "internal/controller/access/passing",
		"internal/controller/access/roles")
	stand(Process, false, "internal/controller/access/granting",
		"internal/controller/access/sessions", "internal/controller/access/signin")
	stand(Process, true, "internal/controller/rollout/driving")
	stand(Process, false, "internal/controller/rollout/driverlease", "internal/controller/rollout/kept")
	stand(Process, true, "internal/controller/backup", "internal/controller/conflict", "internal/controller/flaps",
		"internal/controller/foreseen",
		"internal/controller/history", "internal/controller/inventory",
		"internal/controller/pki", "internal/controller/rollout", "internal/controller/together")
	stand(Workshop, true, "internal/lab/experiment", "internal/lab/report", "internal/lab/report/chart",
		"internal/lab/report/page", "internal/lab/report/topology", "internal/lab/scenario",
		"internal/lab/sim")
	stand(Workshop, false, "internal/diagnose/doctor", "internal/lab", "internal/lab/adapters", "internal/lab/allpairs",
		"internal/lab/attack",
		"internal/lab/bench",
		"internal/lab/bench/controlplane", "internal/lab/bench/flowexport",
		"internal/lab/cmd", "internal/lab/cputime", "internal/lab/hostile", "internal/lab/live",
		"internal/lab/migration", "internal/lab/msgsize", "internal/lab/multiqueue", "internal/lab/netns",
		"internal/lab/outage",
		"internal/lab/qemu", "internal/lab/qemu/image", "internal/lab/run", "internal/lab/traffic")
	stand(Verbs, true, "internal/cli/portable")
	stand(Verbs, false, "internal/cli", "internal/cli/contexts", "internal/cli/signin", "internal/cli/top")
	stand(Top, false, "cmd/heddle", "cmd/heddle-controller", "cmd/heddle-vsphere", "packaging", "internal/dev/docgen",
		"internal/dev/docgen/cmd/docgen",
		"internal/dev/docgen/cmd/manpages",
		"internal/dev/layout", "internal/dev/layout/cmd/layout", "internal/dev/verifier",
		"internal/dev/verifier/cmd/verifier-budget",
		"internal/test/chaos",
		"internal/test/difftest", "internal/test/guardcases", "internal/test/host", "internal/test/kernels",
		"internal/test/kerneltest", "internal/test/siege", "internal/test/signin", "internal/test/fleet",
		"internal/test/smoke",
		"internal/test/testkit", "internal/test/testkit/asheddle", "internal/test/testkit/cable",
		"internal/test/testkit/budget", "internal/test/testkit/certs", "internal/test/testkit/clockshift",
		"internal/test/testkit/cmd/runtests",
		"internal/test/testkit/idp",
		"internal/test/testkit/leaks", "internal/test/testkit/powercut",
		"internal/test/testkit/proposals", "internal/test/testkit/pty",
		"internal/test/testkit/realhost")
	return all
}

// mostMethods is how many methods a type of the product has at most.
const mostMethods = 45

// largeTypes are the types that have more, with how many they may have. A number here only falls.
func largeTypes() map[string]int {
	return map[string]int{}
}
