package accounts

import (
	"context"
	"runtime"
	"time"

	"heddle/internal/observe"
	"heddle/internal/plan"
)

// Reader reads a port's counters; dataplane.CounterReader does.
type Reader interface {
	Read(plan.PortID) (observe.Counters, error)
}

// How a check handles ports with traffic: it reads them again a few times, in search of an instant without.
const (
	rounds = 8
	pause  = 5 * time.Millisecond
)

// Account is one port's accounts.
type Account struct {
	ID plan.PortID
	Books
	Verdict
}

// Check reads every port twice and judges it; ports without an exact result are read again, up to rounds times. It
// takes at most 50 ms in addition to the reading itself. A port whose counters began anew each time has the State "".
func Check(ctx context.Context, r Reader, ports []plan.PortID) ([]Account, error) {
	all := make([]Account, len(ports))
	for i, id := range ports {
		all[i].ID = id
	}
	for round := range rounds {
		open := 0
		for i := range all {
			if s := all[i].State; s == Exact || s == Broken {
				continue
			}
			if err := all[i].settle(r); err != nil {
				return nil, err
			}
			if s := all[i].State; s != Exact && s != Broken {
				open++
			}
		}
		if open == 0 || round == rounds-1 {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
	return all, nil
}

// settle reads the port twice in immediate succession, and keeps the verdict if it is more precise than the one before.
func (a *Account) settle(r Reader) error {
	first, err := r.Read(a.ID)
	if err != nil {
		return err
	}
	second, err := r.Read(a.ID)
	if err != nil {
		return err
	}
	books := Of(&second)
	if v, ok := Judge(Of(&first), books, uint64(runtime.NumCPU())); ok && v.Better(a.Verdict) {
		a.Books, a.Verdict = books, v
	}
	return nil
}
