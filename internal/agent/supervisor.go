package agent

import "errors"

// Supervisor gets the agent's state; systemd is one.
type Supervisor interface {
	// Ready: the plan is active and commands are answered, after the start or after a reload.
	Ready()
	// Reloading: the configuration file is being read again; Ready follows.
	Reloading()
	// Alive comes from the loop every second or so, while nothing keeps it.
	Alive()
	// Stopping: the agent ends; byOrder when a command asked for it, as "heddle down" does.
	Stopping(byOrder bool)
}

// unsupervised is the Supervisor of an agent that nobody watches.
type unsupervised struct{}

func (unsupervised) Ready()        {}
func (unsupervised) Reloading()    {}
func (unsupervised) Alive()        {}
func (unsupervised) Stopping(bool) {}

// supervisor never returns nil.
func (a *Agent) supervisor() Supervisor {
	if a.watchedBy == nil {
		return unsupervised{}
	}
	return a.watchedBy
}

// errOnlyComments says that a configuration file has nothing in it, as the one a package installs or one that was cut
// off: at a start and on SIGHUP nothing is removed for it.
var errOnlyComments = errors.New("the configuration file is empty or has only comments in it, which removes nothing " +
	"here: " +
	"to remove every switch, use heddle apply -f FILE --yes")
