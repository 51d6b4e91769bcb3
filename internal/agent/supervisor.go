package agent

import (
	"bytes"
	"errors"
)

// Supervisor is told how the agent is doing; systemd is one.
type Supervisor interface {
	// Ready: the plan is in force and commands are answered, after the start or after a reload.
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

// errOnlyComments says that a configuration file has nothing in it yet, as the one a package installs.
var errOnlyComments = errors.New("the configuration file has only comments in it")

// onlyComments says whether a YAML file holds nothing but comments and empty lines.
func onlyComments(b []byte) bool {
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}
