package agent

import (
	"heddle/internal/agent/active"
	"heddle/internal/agent/captures"
	"heddle/internal/api"
	"heddle/internal/host/guest"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe/event"
	"heddle/internal/observe/sightings"
	"heddle/internal/plan"
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
	flowing    *flowing           // the metering of flows
	looping    *looping           // the search for loops
	restoring  *restoring         // what others took away from the host's devices
	holding    *holding           // the held devices
	routing    *routing           // the routes of host ports
	locating   *locating          // who is where on overlay segments
	paths      *pathMTU           // how long packets to other hosts may be
	tunnels    *tunnels           // the ways to overlay segments of other hosts
	waiting    *waiting           // ports whose guests run elsewhere
	carrying   *carrying          // what travels with ports from host to host
	moving     *moving            // ports that go from host to host
	reconciler *reconciler        // brings all of that together
	trials     *trials            // changes that are undone unless the host is still reached
	changer    *changer           // changes of the desired state
	slicing    *slicing           // the configuration from a controller
	history    *history           // the applied configurations
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
		refused: refusals{Reader: s.Reader, list: map[plan.PortID][]refusal{}}}
	o.teaming = &teaming{shared: s, ports: o.ports, effect: o.effect, reporter: o.reporter,
		verdicts: uplinks.Verdicts{}}
	o.dated = &dated{shared: s, teaming: o.teaming, ledger: sightings.New(), due: make(chan struct{}, 1)}
	o.flowing = &flowing{}
	o.looping = &looping{shared: s, ports: o.ports, settler: o.settler}
	o.restoring = &restoring{shared: s}
	o.holding = &holding{shared: s, ports: o.ports, records: o.records, effect: o.effect, restoring: o.restoring}
	o.routing = &routing{shared: s, restoring: o.restoring, done: map[plan.PortID]string{}}
	o.waiting = &waiting{shared: s, ports: o.ports, effect: o.effect, settler: o.settler, teaming: o.teaming,
		holding: o.holding, adapters: guest.Adapters{}, domains: map[string]guest.Run{}}
	o.carrying = &carrying{shared: s, ports: o.ports, files: macFiles{s.store.Dir()}}
	o.moving = newMoving(s)
	o.moving.ports, o.moving.waiting, o.moving.goods = o.ports, o.waiting, o.carrying
	o.locating = &locating{shared: s, ports: o.ports, settler: o.settler, generation: o.moving.generationOf}
	o.paths = &pathMTU{shared: s, settler: o.settler, ask: hostdev.PathMTUs}
	o.tunnels = &tunnels{shared: s, locating: o.locating, paths: o.paths}
	o.reconciler = &reconciler{shared: s, ports: o.ports, effect: o.effect, settler: o.settler, attaching: o.attaching,
		chains: o.chains, reporter: o.reporter, teaming: o.teaming, looping: o.looping, holding: o.holding,
		routing: o.routing,
		waiting: o.waiting, flowing: o.flowing, dated: o.dated, tunnels: o.tunnels}
	o.trials = &trials{shared: s, ports: o.ports, records: o.records, effect: o.effect, attaching: o.attaching,
		reconciler: o.reconciler}
	o.changer = &changer{shared: s, ports: o.ports, records: o.records, effect: o.effect, settler: o.settler,
		attaching: o.attaching,
		chains:    o.chains, looping: o.looping, reconciler: o.reconciler, trials: o.trials, teaming: o.teaming,
		restoring: o.restoring}
	o.slicing = &slicing{shared: s, ports: o.ports, effect: o.effect, attaching: o.attaching, trials: o.trials,
		changer: o.changer}
	o.history = &history{shared: s, ports: o.ports}
	o.answers = &answers{shared: s, ports: o.ports, attaching: o.attaching,
		chains: o.chains, reporter: o.reporter, teaming: o.teaming, holding: o.holding, flowing: o.flowing,
		dated:  o.dated,
		moving: o.moving, tracing: make(chan struct{}, 1)}
	o.foreseer = &foreseer{shared: s, ports: o.ports, changer: o.changer, slicing: o.slicing, answers: o.answers,
		one: make(chan struct{}, 1)}
	o.changer.foresee = o.foreseer.of
	o.statics = &statics{shared: s, ports: o.ports}
	o.membership = &membership{shared: s, slicing: o.slicing, answers: o.answers, changer: o.changer,
		statics: o.statics, isolation: &isolation{shared: s, ports: o.ports, attaching: o.attaching,
			limit: event.Limiter[string]{Burst: tellBurst, Every: tellEvery}}}
	o.answers.member = o.membership.Membership
	o.statics.ask, o.statics.changed = o.membership.claim, o.membership.reports
	o.statics.asked = o.membership.ended
	o.statics.change = o.changer.change
	o.statics.unsettled = o.membership.settle
	o.benchmarking = &benchmarking{log: s.log, open: linkproto.OpenBulk, who: o.membership.who}
	o.adoptions = &adoptions{shared: s, ports: o.ports, records: o.records, attaching: o.attaching,
		holding: o.holding, trials: o.trials, changer: o.changer, answers: o.answers}
	o.commands = &commands{shared: s, ports: o.ports, records: o.records, effect: o.effect, attaching: o.attaching,
		chains: o.chains, looping: o.looping, waiting: o.waiting, trials: o.trials, changer: o.changer,
		statics: o.statics, quit: func() {}, describe: o.membership.describe, flowStatus: o.flowing.FlowStatus,
		self: o.membership.self}
	o.maintain = &maintaining{shared: s, ports: o.ports, effect: o.effect, teaming: o.teaming, trials: o.trials,
		changer: o.changer}

	o.settler.reconcile = o.reconciler.reconcile
	o.attaching.attached = o.chains.lookAtNew
	o.holding.doubt = o.waiting.doubt
	o.waiting.change = o.changer.change
	o.waiting.followed, o.ports.leaving = o.moving.look, o.moving.leaving
	o.moving.offer, o.moving.changed, o.membership.moving = o.membership.offer, o.membership.reports, o.moving
	o.membership.locating, o.locating.lost = o.locating, o.membership.lost
	o.carrying.change, o.carrying.announce = o.changer.change, o.teaming.announceMoved
	o.trials.controllers, o.trials.cutOff = o.membership.reach, o.membership.anew
	return o
}

// service answers the API: every command is a method of the owner whose state it reads or changes.
type service struct {
	*commands
	*maintaining
	*changer
	*history
	*trials
	*adoptions
	*answers
	*captures.Captures
	*flowing
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
