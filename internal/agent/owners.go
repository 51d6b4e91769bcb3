package agent

import (
	"heddle/internal/agent/active"
	"heddle/internal/agent/bypass"
	"heddle/internal/agent/captures"
	"heddle/internal/agent/flows"
	"heddle/internal/agent/history"
	"heddle/internal/agent/hostroutes"
	"heddle/internal/agent/loopsearch"
	"heddle/internal/agent/part"
	"heddle/internal/agent/refusals"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/host/guest"
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
	parts      *part.Table        // with state of their own, which the core knows by their hooks
	loops      *loopsearch.Search // the search for loops
	restoring  *restoring         // what others took away from the host's devices
	holding    *holding           // the held devices
	locating   *locating          // who is where on overlay segments
	tunnels    *tunnels           // the ways to overlay segments of other hosts
	waiting    *waiting           // ports whose guests run elsewhere
	carrying   *carrying          // what travels with ports from host to host
	moving     *moving            // ports that go from host to host
	reconciler *reconciler        // brings all of that together
	trials     *trials            // changes that are undone unless the host is still reached
	changer    *changer           // changes of the desired state
	slicing    *slicing           // the configuration from a controller
	history    *history.History   // the applied configurations
	captures   *captures.Captures // running captures; nil if the kernel can't capture
	answers    *answers           // answers to queries
	foreseer   *foreseer          // what a change would newly lose
	statics    *statics           // whose the ports are, and the static ones
	membership *membership        // the host's part in a cluster
	adoptions  *adoptions         // moves of the host's own addresses
	commands   *commands          // commands on ports
	maintain   *maintaining       // commands on uplinks
	// benchmarking is the host's part in benchmarks of the network.
	benchmarking *benchmarking
}

// join makes the owners and connects them.
func join(s *shared) (o owners) {
	current := &active.Current{}
	s.Reader = current.Reader()
	o.ports = &ports{shared: s, stale: true}
	o.records = &records{shared: s, ports: o.ports}
	o.effect = &effect{shared: s, ports: o.ports, current: current}
	o.settler = &settler{shared: s}
	o.attaching = &attaching{shared: s}
	o.chains = &chains{shared: s, settler: o.settler, attaching: o.attaching, strangers: strangers{}}
	o.reporter = &reporter{shared: s, ports: o.ports, chains: o.chains,
		refused: refusals.New(s.Reader)}
	o.teaming = &teaming{shared: s, ports: o.ports, effect: o.effect, reporter: o.reporter,
		verdicts: uplinks.Verdicts{}}
	o.dated = &dated{shared: s, teaming: o.teaming, ledger: sightings.New(), due: make(chan struct{}, 1)}
	o.flowing = &flows.Meter{}
	o.parts = &part.Table{}
	o.loops = loopsearch.New(loopsearch.Host{Reader: s.Reader, Log: s.log, Events: s.events, Blocks: &s.state.Loops,
		Bounds:  func(cfg *spec.Config) []active.Bound { return bypass.Bounds(s.dev, cfg) },
		Resolve: o.ports.resolve, Ask: o.settler.ask, Post: s.PostUnless})
	o.restoring = &restoring{shared: s}
	o.holding = &holding{shared: s, ports: o.ports, records: o.records, effect: o.effect, restoring: o.restoring}
	o.parts.Add("host-routes", hostroutes.New(hostroutes.Host{Devices: func() hostroutes.Devices { return s.dev },
		Doubt: o.restoring.doubts, Restored: o.restoring.restored}))
	o.waiting = &waiting{shared: s, ports: o.ports, effect: o.effect, settler: o.settler, teaming: o.teaming,
		holding: o.holding, adapters: guest.Adapters{}, domains: map[string]guest.Run{}}
	stateDir := s.store.Dir()
	o.carrying = &carrying{shared: s, ports: o.ports, files: macFiles{stateDir}}
	o.moving = newMoving(s)
	o.moving.ports, o.moving.waiting, o.moving.goods = o.ports, o.waiting, o.carrying
	o.locating = &locating{shared: s, ports: o.ports, settler: o.settler, generation: o.moving.generationOf}
	o.tunnels = &tunnels{shared: s, locating: o.locating}
	o.reconciler = &reconciler{shared: s, ports: o.ports, effect: o.effect, settler: o.settler, attaching: o.attaching,
		chains: o.chains, reporter: o.reporter, teaming: o.teaming, holding: o.holding, waiting: o.waiting,
		dated: o.dated, tunnels: o.tunnels, parts: o.parts}
	o.trials = &trials{shared: s, ports: o.ports, records: o.records, effect: o.effect, attaching: o.attaching,
		reconciler: o.reconciler}
	o.changer = &changer{shared: s, ports: o.ports, records: o.records, effect: o.effect, settler: o.settler,
		attaching: o.attaching, chains: o.chains, loops: o.loops, reconciler: o.reconciler, trials: o.trials,
		teaming: o.teaming, restoring: o.restoring}
	o.slicing = &slicing{shared: s, ports: o.ports, effect: o.effect, attaching: o.attaching, trials: o.trials,
		changer: o.changer}
	o.history = history.New(history.Host{Reader: s.Reader, Do: s.Do, Stored: s.store.History(),
		Applied: func() state.Source { return s.state.Config }})
	o.answers = &answers{shared: s, ports: o.ports, attaching: o.attaching, chains: o.chains, reporter: o.reporter,
		teaming: o.teaming, holding: o.holding, flowing: o.flowing, dated: o.dated, moving: o.moving,
		tracing: make(chan struct{}, 1), stateDir: stateDir}
	o.foreseer = &foreseer{shared: s, ports: o.ports, changer: o.changer, slicing: o.slicing, answers: o.answers,
		one: make(chan struct{}, 1)}
	o.statics = &statics{shared: s, ports: o.ports}
	o.membership = &membership{shared: s, slicing: o.slicing, answers: o.answers, changer: o.changer,
		statics: o.statics, isolation: &isolation{shared: s, ports: o.ports, attaching: o.attaching,
			limit: event.Limiter[string]{Burst: tellBurst, Every: tellEvery}}}
	o.benchmarking = &benchmarking{log: s.log, open: linkproto.OpenBulk, who: o.membership.who}
	o.adoptions = &adoptions{shared: s, ports: o.ports, records: o.records, attaching: o.attaching,
		holding: o.holding, trials: o.trials, changer: o.changer, answers: o.answers}
	o.commands = &commands{shared: s, ports: o.ports, records: o.records, effect: o.effect, attaching: o.attaching,
		chains: o.chains, loops: o.loops, waiting: o.waiting, trials: o.trials, changer: o.changer,
		statics: o.statics, quit: func() {}, describe: o.membership.describe, flowStatus: o.flowing.FlowStatus,
		self: o.membership.self}
	o.maintain = &maintaining{shared: s, ports: o.ports, effect: o.effect, teaming: o.teaming, trials: o.trials,
		changer: o.changer}

	late(&o)
	return o
}

// late gives owners the functions of owners after them. Each line hides a circle: a test counts them, and their number
// only falls.
func late(o *owners) {
	o.settler.reconcile, o.settler.asked = o.reconciler.reconcile, o.reconciler.asked
	o.attaching.attached = o.chains.lookAtNew
	o.holding.doubt = o.waiting.doubt
	o.waiting.change = o.changer.change
	o.waiting.followed, o.ports.leaving = o.moving.look, o.moving.leaving
	o.moving.offer, o.moving.changed, o.membership.moving = o.membership.offer, o.membership.reports, o.moving
	o.membership.locating, o.locating.lost = o.locating, o.membership.lost
	o.carrying.change, o.carrying.announce = o.changer.change, o.teaming.announceMoved
	o.trials.controllers, o.trials.cutOff = o.membership.reach, o.membership.anew
	o.changer.foresee = o.foreseer.of
	o.answers.member = o.membership.Membership
	o.statics.ask, o.statics.changed = o.membership.claim, o.membership.reports
	o.statics.asked = o.membership.ended
	o.statics.change = o.changer.change
	o.statics.unsettled = o.membership.settle
}

// service answers the API: every command is a method of the owner whose state it reads or changes.
type service struct {
	*commands
	*maintaining
	*changer
	*history.History
	*trials
	*adoptions
	*answers
	*captures.Captures
	*flows.Meter
	*membership
	*foreseer
	movers
	whoHas
	*benchmarking
}

var _ api.Service = service{}

func (a *Agent) service() service {
	return service{a.commands, a.maintain, a.changer, a.history, a.trials, a.adoptions, a.answers, a.captures,
		a.flowing, a.membership, a.foreseer, movers{a.moving, a.commands},
		whoHas{a.shared, a.locating}, a.benchmarking}
}
