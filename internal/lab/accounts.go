package lab

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrAccounts is wrapped when the counters of a host of a lab did not add up.
var ErrAccounts = errors.New("the counters do not add up")

// accountsWait limits how long asking one agent for its accounts may take.
const accountsWait = 20 * time.Second

// CheckAccounts checks the counters of every host of the lab (S94): each frame received from a port must have been
// delivered, or dropped with one reason. Agents that do not answer are skipped; an experiment may have killed them.
func (r *Record) CheckAccounts(ctx context.Context) error {
	var faults []error
	for _, n := range r.Nodes {
		if !n.Agent {
			continue
		}
		ask, cancel := context.WithTimeout(ctx, accountsWait)
		all, err := r.Agent(n.Name).Accounts(ask)
		cancel()
		if err != nil {
			continue
		}
		for _, a := range all {
			if a.State == "broken" {
				faults = append(faults, fmt.Errorf("%w: host %s, port %s of switch %s: %s", ErrAccounts, n.Name, a.Name,
					a.Switch, a.Fault))
			}
		}
	}
	return errors.Join(faults...)
}
