package controlplane

import (
	"cmp"
	"fmt"

	"heddle/internal/controller/history"
	"heddle/internal/lab/report"
)

// The changes that are measured.
const (
	changeVLAN    = "VLAN of a port group"
	changeUplinks = "uplink policy of the switch"
	changeGroup   = "removed port group"

	changeStages     = "VLAN of a port group, in stages"
	changeTogether   = "VLAN of a port group, together"
	connectStatic    = "static ports connected"
	connectEphemeral = "ephemeral ports connected"
	databaseGrows    = "etcd's database"
	portsMoved       = "VMs moved to other hosts"
	locationChange   = "MAC known to all of a segment"
)

// series is one thing, measured again and again.
type series struct {
	seconds []float64 // until all hosts had it, once per round
	hosts   []float64 // until each host had it, in all rounds
	// connections is how many the hosts made, in all rounds.
	connections int64
	// CPU time per host, once per round.
	controller, agents []float64
}

// result is what was measured with one number of hosts.
type result struct {
	hosts                                   int
	joining, starting, connecting           series
	vlans, policies, removals, reconnecting series
	idleShare                               *work // percent of a core; nil for not measured
	memory, mostMemory                      float64
	checked                                 int           // contents of hosts that were compared with the definition
	statics, ephemerals                     *portLoad     // nil for not measured
	moves                                   *moveLoad     // nil for not measured
	together                                series        // changes at one instant
	spreads, late                           []float64     // in seconds, and hosts, once per round
	staged                                  series        // changes in stages
	added                                   []float64     // added to their waits, in seconds, once per round
	history                                 *pastLoad     // nil for not measured
	spread                                  *locationLoad // nil for not measured
	database                                bool          // only the database was measured
}

// Budgets at budgetHosts, and what is expected at manyHosts.
const (
	budgetHosts, manyHosts, fewHosts = 2500, 10_000, 1000

	vlanBudget, changeBudget, manyChangeBudget = 0.5, 1.0, 1.5
	startBudget, reconnectBudget               = 3.0, 10.0
	memoryBudget, manyMemoryBudget             = 600e6, 2e9
	idleBudget                                 = 5.0
	flatBudget                                 = 1.3
	// connectBudget is how long a port may take until it is active, quotaBudget which part of the quota ten minutes of
	// connects may fill.
	connectBudget, quotaBudget = 0.05, 50.0
	// togetherBudget is how long a change may take that hosts make together, with the second that is announced.
	togetherBudget = 2.0
	// stagesBudget is how much a change in stages may take beside its waits, historyBudget how long a look at the
	// history may take.
	stagesBudget, historyBudget = 1.0, 0.1
	// locationBudget is how long it may take until all hosts of a segment know where a MAC is.
	locationBudget = 1.0
	// moveBudget is how long after the target's report the controller may take to say where the port is.
	moveBudget = 0.1
)

func reportOf(env report.Environment, o Options, all []*result) *report.Report {
	rep := &report.Report{Name: "bench control-plane", Environment: env}
	for _, r := range all {
		rep.Rows = append(rep.Rows, r.rows()...)
		rep.Budgets = append(rep.Budgets, r.budgets()...)
	}
	rep.Budgets = append(rep.Budgets, flat(all)...)
	rep.Notes = []string{fmt.Sprintf("A real controller process with etcd inside, on this machine's disk; simulated "+
		"hosts, all in one other process, with the client that real agents have, mutual TLS and a connection of "+
		"127.0.0.0/8 each. A simulated host keeps its slice in memory: it has no kernel and no disk, so what a host "+
		"does to activate a change is not included. Each reports %d ports. The definition has one switch, %d port "+
		"groups and %d templates. Each change was made %d times. \"all\" is the time until the controller had heard "+
		"from every host, from the call that makes the change; p50, p99 and max are over hosts and rounds until the "+
		"host had it. CPU times are per host and change, of the controller and of all simulated hosts. A start is "+
		"that after kill -9, until the controller answers with the newest definition; reconnecting is counted from "+
		"there, and the definition changes before the hosts are back.", o.Ports, groups, racks, o.Rounds)}
	if o.Migrate {
		rep.Notes = []string{fmt.Sprintf("A real controller process with etcd inside, on this machine's disk; "+
			"simulated hosts, all in one other process, with the client that real agents have, no kernel and no disk. "+
			"VMs move from host to host, %d a second for %s, each at its time whether or not those before are done: "+
			"the target reports that the port waits, the source that it is silent, the target that the guest runs "+
			"with the next generation. p50, p99 and max are from that last report, before it is sent, until the "+
			"controller has answered that the port is there; it is asked every %s. CPU times are per move.",
			o.Moves, o.Moving, poll)}
		return rep
	}
	if o.Locations > 0 {
		rep.Notes = []string{locationNote(o.Locations)}
		return rep
	}
	if o.Database {
		rep.Notes = []string{fmt.Sprintf("A real controller process with etcd inside, on this machine's disk; "+
			"simulated hosts, all in one other process, with the client that real agents have, no kernel and no disk. "+
			"Static ports are connected at %d a second for %s, on all hosts in turn, each at its time whether or not "+
			"those before are done: the host claims its port, and is answered when etcd has it. The size of the "+
			"database is what the controller says of it meanwhile: its file is what etcd holds its quota against. "+
			"Where ports are connected for less than ten minutes, the budget is held against what is in use then at "+
			"the rate at which it grew.", o.Connects, o.Connecting)}
		return rep
	}
	if o.History > 0 {
		rep.Notes = []string{fmt.Sprintf("A real controller process with etcd inside, on this machine's disk. %d "+
			"changes of a definition with %d port groups were written into its database, and %d more made by a call "+
			"of each, by which the oldest ones go. Each look was taken %d times; diffs are of revisions that "+
			"were drawn "+
			"by lot. Then the controller was started with --history-time 1ms: \"left by age\" is what is kept after "+
			"%d more changes.",
			o.History, groups, calledChanges, looksAtHistory, history.Stretch)}
		return rep
	}
	if o.Stages {
		rep.Notes = append(rep.Notes, fmt.Sprintf("A change in the stages %s is watched for %s before the first one "+
			"and for %s after each, %s in all; \"added to the waits\" is what it took beside these. Simulated hosts "+
			"make the change at once, and answer what they have counted.", inStages, stageWatch, stageWait, configured))
		return rep
	}
	if o.Together {
		rep.Notes = append(rep.Notes, "A change that hosts make together has its instant a second after the decision; "+
			"\"all\" has that second. Simulated hosts make the change ready at once. They share the processors with "+
			"the "+
			"controller and with one another, so that many are late which would not be on machines of their own.")
		return rep
	}
	if o.Connects > 0 {
		rep.Notes = append(rep.Notes, fmt.Sprintf("Ports are connected at %d a second for %s, on all hosts in turn, "+
			"each at its time whether or not those before are done; their times include how late this program was. A "+
			"static port is active when the controller has answered its host's claim, an ephemeral one at once; "+
			"\"listed\" is how long after the last the controller listed all ports. CPU times are per port.",
			o.Connects, o.Connecting))
	}
	if few, many := pair(all); few != nil {
		rep.Notes = append(rep.Notes, fmt.Sprintf("CPU of simulated hosts per host and change, %d hosts / %d hosts: "+
			"%.2f. They share two CPUs' caches here, and real ones do not.", many.hosts, few.hosts,
			ratio(many.vlans.agents, few.vlans.agents)))
	}
	return rep
}

// rows are one for each thing that was measured.
func (r *result) rows() (rows []report.Row) {
	for _, part := range []struct {
		what string
		*series
	}{
		{"join", &r.joining}, {"start", &r.starting}, {"first connection", &r.connecting}, {changeVLAN, &r.vlans},
		{changeTogether, &r.together}, {changeStages, &r.staged},
		{changeUplinks, &r.policies}, {changeGroup, &r.removals}, {"reconnecting", &r.reconnecting},
	} {
		if len(part.seconds) > 0 {
			rows = append(rows, part.row(r.hosts, part.what))
		}
	}
	if r.history != nil {
		rows = append(rows, r.history.rows(r.hosts)...)
	}
	if len(r.added) > 0 {
		rows = append(rows, r.stagesRow())
	}
	if r.spread != nil {
		rows = append(rows, r.spread.rows(r.hosts)...)
	}
	if r.moves != nil {
		rows = append(rows, r.moves.row(r.hosts))
	}
	for _, part := range []struct {
		what string
		*portLoad
	}{{connectStatic, r.statics}, {connectEphemeral, r.ephemerals}} {
		if part.portLoad != nil {
			rows = append(rows, part.row(r.hosts, part.what))
		}
	}
	if r.statics != nil && r.database {
		rows = append(rows, r.statics.sizeRows(r.hosts)...)
	}
	if len(r.spreads) > 0 {
		rows = append(rows, report.Row{{Name: "hosts", Value: r.hosts}, {Name: "work", Value: "changed together"},
			{Name: "spread", Title: "told: apart", Value: report.Summarise(r.spreads), Unit: report.Seconds},
			{Name: "late", Title: "hosts late", Value: report.Summarise(r.late), Unit: report.Count}})
	}
	idle := report.Row{{Name: "hosts", Value: r.hosts}, {Name: "work", Value: "idle, memory"},
		{Name: "memory", Value: r.memory, Unit: report.Bytes}, {Name: "most_memory", Title: "most memory",
			Value: r.mostMemory, Unit: report.Bytes},
		{Name: "memory_per_host", Title: "memory/host", Value: r.memory / float64(r.hosts), Unit: report.Bytes},
		{Name: "checked", Value: r.checked, Hidden: true}}
	if r.idleShare != nil {
		idle = append(idle,
			report.Field{Name: "idle_controller", Title: "idle: controller", Value: r.idleShare.controller,
				Unit: report.Percent},
			report.Field{Name: "idle_agents", Title: "hosts", Value: r.idleShare.agents, Unit: report.Percent})
	}
	return append(rows, idle)
}

func (s *series) row(hosts int, what string) report.Row {
	row := report.Row{{Name: "hosts", Value: hosts}, {Name: "work", Value: what},
		{Name: "all", Title: "all (quartiles)", Value: report.Summarise(s.seconds), Unit: report.Seconds}}
	if len(s.hosts) > 0 {
		for _, q := range []struct {
			name string
			part float64
		}{{"p50", 0.5}, {"p99", 0.99}, {"max", 1}} {
			row = append(row, report.Field{Name: q.name, Value: percentile(s.hosts, q.part), Unit: report.Seconds})
		}
	}
	if s.connections > 0 {
		row = append(row, report.Field{Name: "connections", Title: "connections/host",
			Value: float64(s.connections) / float64(hosts*len(s.seconds))})
	}
	return append(row,
		report.Field{Name: "cpu_controller", Title: "CPU/host: controller", Value: report.Summarise(s.controller),
			Unit: report.Seconds},
		report.Field{Name: "cpu_agents", Title: "CPU/host: hosts", Value: report.Summarise(s.agents),
			Unit: report.Seconds},
		report.Field{Name: "samples", Value: s.seconds, Hidden: true})
}

func (c *portLoad) row(hosts int, what string) report.Row {
	ports := float64(c.ports)
	return report.Row{{Name: "hosts", Value: hosts}, {Name: "work", Value: what},
		{Name: "ports", Value: c.ports, Unit: report.Count},
		{Name: "rate", Value: ports / c.seconds, Unit: report.PerSecond},
		{Name: "p50", Value: percentile(c.delays, 0.5), Unit: report.Seconds},
		{Name: "p99", Value: percentile(c.delays, 0.99), Unit: report.Seconds},
		{Name: "max", Value: percentile(c.delays, 1), Unit: report.Seconds},
		{Name: "again", Title: "asked again", Value: int(c.again), Unit: report.Count},
		{Name: "listed", Value: c.shown, Unit: report.Seconds},
		{Name: "cpu_controller_port", Title: "CPU/port: controller", Value: c.used.controller / ports,
			Unit: report.Seconds},
		{Name: "cpu_agents_port", Title: "CPU/port: hosts", Value: c.used.agents / ports, Unit: report.Seconds},
		{Name: "core", Title: "controller, of a core", Value: 100 * c.used.controller / c.seconds,
			Unit: report.Percent},
		{Name: "transactions", Value: float64(c.transactions) / c.seconds, Unit: report.PerSecond},
		{Name: "written", Title: "to disk/s", Value: c.written / c.seconds, Unit: report.Bytes},
		{Name: "database_ten_minutes", Title: "database after 10 min", Value: c.inTenMinutes(), Unit: report.Bytes},
		{Name: "database", Value: float64(c.database), Unit: report.Bytes, Hidden: true},
		{Name: "quota", Value: float64(c.quota), Unit: report.Bytes, Hidden: true}}
}

// budgets of one number of hosts.
func (r *result) budgets() (list []report.Budget) {
	hold := func(what string, value float64, unit report.Unit, budget float64) {
		list = append(list, report.Hold(fmt.Sprintf("%s, %d hosts", what, r.hosts), value, unit, report.AtMost, budget))
	}
	if r.spread != nil {
		r.spread.budgets(hold, r.mostMemory)
		return list
	}
	if r.moves != nil {
		hold("location known after the target's report: p99", percentile(r.moves.delays, 0.99), report.Seconds,
			moveBudget)
		return list
	}
	if r.history != nil {
		return r.history.budgets()
	}
	if len(r.staged.seconds) > 0 {
		if r.hosts == budgetHosts {
			hold(changeStages+": added to its waits", report.Summarise(r.added).Median, report.Seconds, stagesBudget)
		}
		return list
	}
	if len(r.together.seconds) > 0 {
		if r.hosts == budgetHosts {
			hold(changeTogether+": acknowledged by all", report.Summarise(r.together.seconds).Median, report.Seconds,
				togetherBudget)
		}
		return list
	}
	if r.database {
		hold("database after 10 minutes of connects, of its quota",
			100*r.statics.inTenMinutes()/float64(r.statics.quota), report.Percent, quotaBudget)
		return list
	}
	vlan, change, memory := vlanBudget, changeBudget, memoryBudget
	switch r.hosts {
	case budgetHosts:
	case manyHosts:
		vlan, change, memory = manyChangeBudget, manyChangeBudget, manyMemoryBudget
	default:
		return nil
	}
	for _, c := range []struct {
		what   string
		s      *series
		budget float64
	}{{changeVLAN, &r.vlans, vlan}, {changeUplinks, &r.policies, change}, {changeGroup, &r.removals, change}} {
		hold(c.what+": p99 of hosts", percentile(c.s.hosts, 0.99), report.Seconds, c.budget)
		hold(c.what+": acknowledged by all", report.Summarise(c.s.seconds).Median, report.Seconds, c.budget)
	}
	hold("controller's memory", r.mostMemory, report.Bytes, memory)
	if r.hosts != budgetHosts {
		return list
	}
	hold("controller's start", report.Summarise(r.starting.seconds).Median, report.Seconds, startBudget)
	hold("all agents reconnect", report.Summarise(r.reconnecting.seconds).Max, report.Seconds, reconnectBudget)
	if r.idleShare != nil {
		hold("idle controller, of a core", r.idleShare.controller, report.Percent, idleBudget)
	}
	if c := r.statics; c != nil {
		hold("static port connected: p99", percentile(c.delays, 0.99), report.Seconds, connectBudget)
		hold("database after 10 minutes of connects, of its quota", 100*c.inTenMinutes()/float64(c.quota),
			report.Percent, quotaBudget)
	}
	return list
}

// flat compares what a change costs a controller per host with few and with many hosts, where both were measured. What
// it costs a simulated host is another thing: they share caches and a garbage collector, which real ones do not.
func flat(all []*result) []report.Budget {
	few, many := pair(all)
	if few == nil {
		return nil
	}
	return []report.Budget{report.Hold(fmt.Sprintf("controller's CPU per host and change, %d hosts / %d hosts",
		many.hosts, few.hosts), ratio(many.vlans.controller, few.vlans.controller), report.Ratio, report.AtMost,
		flatBudget)}
}

// pair are the results with few and with many hosts; nil where not both were measured.
func pair(all []*result) (few, many *result) {
	for _, r := range all {
		switch r.hosts {
		case fewHosts:
			few = r
		case manyHosts:
			many = r
		}
	}
	if few == nil || many == nil {
		return nil, nil
	}
	return few, many
}

// ratio compares the medians.
func ratio(many, few []float64) float64 {
	return report.Summarise(many).Median / cmp.Or(report.Summarise(few).Median, 1)
}
