package agent

import (
	"heddle/internal/agent/active"
	"heddle/internal/agent/adoption"
	"heddle/internal/agent/benchmarks"
	"heddle/internal/agent/bypass"
	"heddle/internal/agent/captures"
	"heddle/internal/agent/connection"
	"heddle/internal/agent/definition"
	"heddle/internal/agent/flows"
	"heddle/internal/agent/held"
	"heddle/internal/agent/history"
	"heddle/internal/agent/hostroutes"
	"heddle/internal/agent/locations"
	"heddle/internal/agent/loopsearch"
	"heddle/internal/agent/migration"
	"heddle/internal/agent/part"
	"heddle/internal/agent/portstate"
	"heddle/internal/agent/refusals"
	"heddle/internal/agent/standby"
	"heddle/internal/agent/state"
	"heddle/internal/agent/staticports"
	"heddle/internal/agent/tunnels"
	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/observe/sightings"
	"heddle/internal/spec"
	"heddle/internal/uplinks"
	"heddle/internal/uplinks/linkproto"
)

// owners hold the agent's state, each its own part. Only the loop uses them, so that none needs a lock. Each owner
// knows the owners whose state it reads or changes; the list is in that order, and an owner knows none of those after
// it. A call to a later owner is a function value, which join sets.
type owners struct {
	// connection is that to the controllers of the host's cluster.
	connection *connection.Connection
	parts      *part.Table        // with state of their own, which the core knows by their hooks
	connected  *connected         // the ports that commands connected
	definition *definition.Part   // what the controllers define
	ports      *ports             // what the file and commands ask for
	records    *records           // moves of the host's own addresses, for the next agent
	effect     *effect            // what is active in the kernel
	settler    *settler           // when the loop repairs the state
	attaching  *attaching         // attaching devices to the program
	chains     *chains            // other programs on the devices
	reporter   *reporter          // reports about ports and uplinks
	teaming    *teaming           // links, teams and announcements
	dated      *dated             // when counters grew
	flowing    *flows.Meter       // the metering of flows
	loops      *loopsearch.Search // the search for loops
	restoring  *held.Restoring    // what others took away from the host's devices
	holding    *held.Part         // the held devices
	locating   *locations.Part    // who is where on overlay segments
	tunnels    *tunnels.Tunnels   // the ways to overlay segments of other hosts
	waiting    *standby.Part      // ports whose guests run elsewhere
	carrying   *portstate.Carrier // what travels with ports from host to host
	moving     *migration.Part    // ports that go from host to host
	reconciler *reconciler        // brings all of that together
	trials     *trials            // changes that are undone unless the host is still reached
	changer    *changer           // changes of the desired state
	slicing    *slicing           // the configuration from a controller
	history    *history.History   // the applied configurations
	captures   *captures.Captures // running captures; nil if the kernel can't capture
	inCluster  *inCluster         // what the host is in its cluster
	answers    *answers           // answers to queries
	foreseer   *foreseer          // what a change would newly lose
	files      *files             // commands about configuration files
	statics    *staticports.Part  // whose the ports are, and the static ones
	membership *membership        // the host's part in a cluster
	adoptions  *adoption.Part     // moves of the host's own addresses
	arrivals   *arrivals          // ports of guests that arrive
	commands   *commands          // commands on ports
	maintain   *maintaining       // commands on uplinks
	// benchmarking is the host's part in benchmarks of the network.
	benchmarking *benchmarks.Host
}

// join makes the owners and connects them.
func join(s *shared) (o owners) {
	current := &active.Current{}
	s.Reader = current.Reader()
	o.connection = connection.New(s.log, s.Stopped())
	o.parts = &part.Table{}
	o.connected = &connected{shared: s, parts: o.parts}
	o.definition = definition.New(&s.state.Definition,
		func() []state.Use { return usesOf(s.state.Ports, s.state.Overrides) }, s.Complain)
	o.ports = &ports{shared: s, connected: o.connected, definition: o.definition, stale: true}
	o.records = &records{shared: s, ports: o.ports}
	o.effect = &effect{shared: s, ports: o.ports, parts: o.parts, current: current}
	o.settler = &settler{shared: s}
	o.attaching = &attaching{shared: s}
	o.chains = &chains{shared: s, settler: o.settler, attaching: o.attaching, strangers: strangers{}}
	o.reporter = &reporter{shared: s, ports: o.ports, chains: o.chains,
		refused: refusals.New(s.Reader)}
	o.teaming = &teaming{shared: s, ports: o.ports, effect: o.effect, reporter: o.reporter,
		verdicts: uplinks.Verdicts{}}
	o.dated = &dated{shared: s, teaming: o.teaming, ledger: sightings.New(), due: make(chan struct{}, 1)}
	o.flowing = &flows.Meter{}
	o.loops = loopsearch.New(loopsearch.Host{Reader: s.Reader, Log: s.log, Events: s.events, Blocks: &s.state.Loops,
		Bounds:  func(cfg *spec.Config) []active.Bound { return bypass.Bounds(s.dev, cfg) },
		Resolve: o.ports.resolve, Ask: o.settler.ask, Post: s.PostUnless})
	o.restoring = held.NewRestoring(s.log, s.events)
	o.holding = newHolding(s, o.connected, o.ports, o.records, o.effect, o.restoring, o.parts)
	o.parts.Add("host-routes", hostroutes.New(hostroutes.Host{Devices: func() hostroutes.Devices { return s.dev },
		Doubt: o.restoring.Doubts, Restored: o.restoring.Restored}))
	o.waiting = newStandby(s, o.ports, o.effect, o.settler, o.teaming, o.parts)
	o.parts.Add("standby", o.waiting)
	o.moving = newMigration(s, o.connected, o.ports)
	o.parts.Add("migration", o.moving)
	o.locating = newLocations(s, o.definition, o.settler, o.moving)
	o.tunnels = tunnels.New(tunnels.Host{Reader: s.Reader, Loop: s.Loop, Agent: s.name, Reach: o.locating.Reach,
		Devices: func() tunnels.Devices { return s.dev }})
	o.reconciler = &reconciler{shared: s, ports: o.ports, effect: o.effect, settler: o.settler, attaching: o.attaching,
		chains: o.chains, reporter: o.reporter, teaming: o.teaming, holding: o.holding, restoring: o.restoring,
		waiting: o.waiting,
		dated:   o.dated, tunnels: o.tunnels, parts: o.parts}
	o.trials = &trials{shared: s, definition: o.definition, connected: o.connected, ports: o.ports, records: o.records,
		effect:     o.effect,
		attaching:  o.attaching,
		reconciler: o.reconciler, connection: o.connection}
	o.changer = &changer{shared: s, definition: o.definition, ports: o.ports, records: o.records, effect: o.effect,
		settler:   o.settler,
		attaching: o.attaching, chains: o.chains, loops: o.loops, reconciler: o.reconciler, trials: o.trials,
		teaming: o.teaming, restoring: o.restoring}
	joinAnswers(s, &o)
	joinCluster(s, &o)
	joinCommands(s, &o)
	late(&o)
	return o
}

// joinAnswers makes the owners that follow controllers' definitions, and answer queries.
func joinAnswers(s *shared, o *owners) {
	o.slicing = &slicing{shared: s, definition: o.definition, ports: o.ports, effect: o.effect, attaching: o.attaching,
		trials:  o.trials,
		changer: o.changer}
	o.history = history.New(history.Host{Reader: s.Reader, Do: s.Do, Stored: s.store.History(),
		Applied: func() state.Source { return s.state.Config }})
	o.inCluster = &inCluster{shared: s, definition: o.definition, connection: o.connection}
	o.answers = &answers{shared: s, definition: o.definition, inCluster: o.inCluster, ports: o.ports,
		attaching: o.attaching, chains: o.chains,
		reporter: o.reporter,
		teaming:  o.teaming, holding: o.holding, flowing: o.flowing, dated: o.dated, moving: o.moving,
		tracing: make(chan struct{}, 1), stateDir: s.store.Dir()}
	o.foreseer = &foreseer{shared: s, definition: o.definition, ports: o.ports, changer: o.changer, slicing: o.slicing,
		answers: o.answers,
		one:     make(chan struct{}, 1)}
	o.files = &files{shared: s, ports: o.ports, attaching: o.attaching, trials: o.trials, changer: o.changer,
		foreseer: o.foreseer}
}

// joinCluster makes the owners that speak with controllers and other hosts.
func joinCluster(s *shared, o *owners) {
	o.carrying = newCarrier(s, o.parts, o.connected, o.ports, o.changer, o.teaming)
	o.moving.Carry(o.carrying)
	o.moving.Join(o.connection)
	o.statics = newStaticPorts(s, o.definition, o.connected, o.ports, o.changer, o.connection)
	o.membership = &membership{inCluster: o.inCluster, parts: o.parts, definition: o.definition,
		connection: o.connection,
		slicing:    o.slicing, answers: o.answers,
		changer: o.changer,
		statics: o.statics, moving: o.moving, locating: o.locating, isolation: &isolation{shared: s, ports: o.ports,
			attaching: o.attaching,
			limit:     event.Limiter[string]{Burst: tellBurst, Every: tellEvery}}}
	o.connection.Serve(o.membership.options)
	o.connection.Follow(o.membership.reports)
	o.benchmarking = benchmarks.New(s.log, linkproto.OpenBulk, o.connection.Who)
}

// joinCommands makes the owners that only commands use.
func joinCommands(s *shared, o *owners) {
	o.adoptions = newAdoption(adopting{s, o.connected, o.ports, o.records, o.attaching, o.changer}, o.holding, o.trials,
		o.answers.source)
	o.arrivals = &arrivals{shared: s, connected: o.connected, ports: o.ports, effect: o.effect, settler: o.settler,
		holding: o.holding,
		waiting: o.waiting, change: o.changer.change}
	o.parts.Add("arrivals", o.arrivals)
	o.commands = &commands{shared: s, definition: o.definition, connected: o.connected, ports: o.ports,
		records: o.records, effect: o.effect,
		attaching: o.attaching,
		chains:    o.chains, loops: o.loops, waiting: o.waiting, arrivals: o.arrivals, holding: o.holding,
		trials: o.trials, changer: o.changer,
		statics: o.statics, quit: func() {},
		admission: newAdmission(s, o.ports, o.attaching, o.connection.Describe, o.flowing.FlowStatus),
		self:      o.connection.Self}
	o.maintain = &maintaining{shared: s, ports: o.ports, effect: o.effect, teaming: o.teaming, trials: o.trials,
		changer: o.changer}
}

// late gives owners the functions of owners after them. Each line hides a circle: a test counts them, and their number
// only falls.
func late(o *owners) {
	o.settler.reconcile, o.settler.asked = o.reconciler.reconcile, o.reconciler.asked
	o.attaching.attached = o.chains.lookAtNew
}

// service answers the API: every command is a method of the owner whose state it reads or changes.
type service struct {
	*commands
	*maintaining
	*changer
	*files
	*history.History
	*trials
	*adoption.Part
	*answers
	*captures.Captures
	*flows.Meter
	*membership
	*foreseer
	migration.Commands
	locations.Queries
	*benchmarks.Host
	featured
}

var _ api.Service = service{}

func (a *Agent) service() service {
	return service{a.commands, a.maintain, a.changer, a.files, a.history, a.trials, a.adoptions, a.answers, a.captures,
		a.flowing, a.membership, a.foreseer, a.moveCommands(),
		locations.NewQueries(a.locating), a.benchmarking, featured{a.parts}}
}
