package controlplane

import (
	"errors"
	"fmt"
	"time"

	"heddle/internal/controller/history"
)

// Options are those of "heddle bench control-plane".
type Options struct {
	// Controller is the program, with the arguments that precede the others.
	Controller []string
	// Hosts are numbers of hosts; each is measured with a controller of its own.
	Hosts []int
	// Ports is how many each host reports.
	Ports int
	// Rounds is how often each change is made.
	Rounds int
	// Idle is how long the CPU time of a cluster is measured in which nothing happens.
	Idle time.Duration
	// Connects is how many ports are connected a second, for as long as Connecting: static ones, and then ephemeral
	// ones. 0 measures neither.
	Connects   int
	Connecting time.Duration
	// Database measures how etcd's database grows while static ports are connected, and nothing else.
	Database bool
	// Together measures changes that hosts make at one instant, and nothing else.
	Together bool
	// Stages measures changes that hosts make in stages, and nothing else.
	Stages bool
	// History is how many changes of the definition are made and kept, and looked at; nothing else is measured then. 0
	// measures no history.
	History int
	// Locations is how many MACs are behind the hosts' ports, in overlay segments; nothing else is measured then. 0
	// measures none.
	Locations int
	// Migrate measures moves of VMs from host to host and nothing else: Moves a second, for as long as Moving.
	Migrate bool
	Moves   int
	Moving  time.Duration
	// Progress is called before every step; nil for silence.
	Progress func(done, total int, what string)
	Now      func() time.Time
}

// Default sets what is measured unless somebody says.
func (o *Options) Default() {
	o.Hosts, o.Ports, o.Rounds, o.Idle = []int{100, 1000, 2500}, 100, 9, 10*time.Second
	o.Connects, o.Connecting = 500, 10*time.Second
	o.Moves, o.Moving = 100, 10*time.Second
}

// mostHosts bounds a run: each host takes a descriptor here and one in the controller.
const mostHosts = 15_000

// mostConnects is how many static ports the port groups have room for, roughly.
const mostConnects = 500_000.0

// mostHistory is how long a history may be, leastHistory how short.
const leastHistory, mostHistory = 2 * history.Stretch, 1_000_000

// mostLocations is how many MACs one run has, and leastLocationHosts between how many hosts.
const mostLocations, leastLocationHosts = 4_000_000, 2

// mostMoves is how many moves a second make sense.
const mostMoves = 10_000

// Check says what is wrong with the options.
func (o Options) Check() error {
	if len(o.Hosts) == 0 || o.Ports < 0 || o.Rounds < 1 || o.Idle < 0 {
		return errors.New("give a number of hosts, and positive numbers of rounds and ports")
	}
	if most := mostConnects; o.Connects < 0 || o.Connecting < 0 || float64(o.Connects)*o.Connecting.Seconds() > most {
		return fmt.Errorf("%d connects a second for %s: give a rate and a time by which at most %.0f ports are "+
			"connected", o.Connects, o.Connecting, most)
	}
	if o.Migrate && (o.Moves < 1 || o.Moves > mostMoves || o.Moving <= 0) {
		return fmt.Errorf("%d moves a second for %s: give 1 to %d, and a time", o.Moves, o.Moving, mostMoves)
	}
	if o.History != 0 && (o.History < leastHistory || o.History > mostHistory) {
		return fmt.Errorf("a history of %d changes: give %d to %d", o.History, leastHistory, mostHistory)
	}
	if o.Locations < 0 || o.Locations > mostLocations {
		return fmt.Errorf("%d locations: give 1 to %d", o.Locations, mostLocations)
	}
	if o.Database && (o.Connects < 1 || o.Connecting <= 0) {
		return errors.New("a database grows while ports are connected: give how many a second, and a time")
	}
	for _, n := range o.Hosts {
		if o.Migrate && n < 2 {
			return errors.New("a VM moves between two hosts at least")
		}
		if o.Locations > 0 && n < leastLocationHosts {
			return errors.New("locations are told from one host to another: give two hosts at least")
		}
		if n < 1 || n > mostHosts {
			return fmt.Errorf("%d hosts: give 1 to %d", n, mostHosts)
		}
	}
	return nil
}
