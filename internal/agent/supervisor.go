package agent

// Supervisor is informed about the agent's state; systemd is one.
type Supervisor interface {
	// Ready: the plan is active and commands are answered, after the start or after a reload.
	Ready()
	// Reloading: the configuration file is being read again; Ready follows.
	Reloading()
	// Alive is called by the loop every second or so, unless something blocks the loop.
	Alive()
	// Stopping: the agent ends; byOrder is true if a command asked for it, as "heddle down" does.
	Stopping(byOrder bool)
}

// unsupervised is the Supervisor of an agent that nobody watches.
type unsupervised struct{}

func (unsupervised) Ready()        {}
func (unsupervised) Reloading()    {}
func (unsupervised) Alive()        {}
func (unsupervised) Stopping(bool) {}

// supervisor returns the agent's supervisor, never nil.
func (a *Agent) supervisor() Supervisor {
	if a.watchedBy == nil {
		return unsupervised{}
	}
	return a.watchedBy
}
