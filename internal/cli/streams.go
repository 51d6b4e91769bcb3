package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"heddle/internal/api"
	"heddle/internal/spec/printable"
)

// streams follows something of each host that is connected, those as well that come later, until its context ends. A
// host or a controller that goes is named once, and followed again when it is back.
type streams struct {
	d     Deps
	fleet *api.Fleet
	what  string // "its events"
	// follow follows one host until it is away; heard is called when it answers.
	follow func(ctx context.Context, client api.Service, host string, heard func()) error
	// only says which hosts are followed; nil for all.
	only func(host string) bool

	mu    sync.Mutex
	hosts map[string]*streamed
	heard bool // some host has answered
}

// streamed is how one host is followed.
type streamed struct {
	running bool
	away    bool      // which has been said
	later   time.Time // it does not have what is asked for, and is asked again then
	lacks   error
}

// askAgain is how soon a host is asked again that did not have what is asked for.
const askAgain = 10 * time.Second

func newStreams(d Deps, fleet *api.Fleet, what string, follow func(context.Context, api.Service, string,
	func()) error) *streams {
	return &streams{d: d, fleet: fleet, what: what, follow: follow, hosts: map[string]*streamed{}}
}

// at is how a host is followed. The caller holds the lock.
func (s *streams) at(host string) *streamed {
	f := s.hosts[host]
	if f == nil {
		f = &streamed{}
		s.hosts[host] = f
	}
	return f
}

// knowsAway takes in that somebody has been told that a host is away.
func (s *streams) knowsAway(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at(host).away = true
}

// away are the hosts that are not followed now, since they are away.
func (s *streams) away() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for host, f := range s.hosts {
		if f.away {
			list = append(list, host)
		}
	}
	slices.Sort(list)
	return list
}

// run follows until ctx ends. The error is of the first look at the cluster, or that no host has what is asked for.
func (s *streams) run(ctx context.Context) error {
	var g sync.WaitGroup
	defer g.Wait()
	gone := false // the controller, which has been said
	for first := true; ctx.Err() == nil; first = false {
		list, err := hostsWithin(ctx, s.fleet)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil && !gone:
			s.note(fmt.Sprintf("%v; the hosts go on, and %s are followed when a controller answers", err, s.what))
			gone = true
		case err == nil:
			gone = false
			for _, h := range list.Hosts {
				if s.only != nil && !s.only(h.Name) {
					continue
				}
				if h.State == api.HostDisconnected {
					s.missed(h.Name, &api.AwayError{Host: h.Name, Why: "it is not connected to a controller"})
				} else {
					s.begin(ctx, h.Name, &g)
				}
			}
			if err := s.nobody(list.Hosts); err != nil {
				return err
			}
		}
		sleepFor(ctx, redialEvery)
	}
	return nil
}

// ended is the error of what ran until ctx ended: its own, or why ctx ended where nobody interrupted it.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return errors.Join(err, cause)
	}
	return err
}

// nobody is the error where all hosts that are connected have said that they do not have what is asked for.
func (s *streams) nobody(hosts []api.FleetHost) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range hosts {
		switch f := s.at(h.Name); {
		case s.only != nil && !s.only(h.Name):
		case s.heard, h.State != api.HostDisconnected && f.lacks == nil:
			return nil
		case err == nil:
			err = f.lacks
		}
	}
	return err
}

// hostsWithin are the hosts, asked for no longer than a call may take.
func hostsWithin(ctx context.Context, fleet *api.Fleet) (*api.FleetHosts, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return fleet.Hosts(ctx)
}

func sleepFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (s *streams) note(text string) { fmt.Fprintf(s.d.Stderr, "heddle: %s\n", printable.Text(text)) }

// begin follows a host that is not followed.
func (s *streams) begin(ctx context.Context, host string, g *sync.WaitGroup) {
	s.mu.Lock()
	f := s.at(host)
	skip := f.running || time.Now().Before(f.later)
	f.running = f.running || !skip
	s.mu.Unlock()
	if skip {
		return
	}
	g.Go(func() {
		err := s.follow(ctx, s.fleet.Host(host), host, func() { s.answers(host) })
		s.mu.Lock()
		f.running = false
		if err != nil && isMissing(err) {
			f.lacks, f.later = err, time.Now().Add(askAgain)
		}
		s.mu.Unlock()
		// The controller is asked next, which knows whether it is the host that is away.
		if err != nil && ctx.Err() == nil && !errors.Is(err, api.ErrNoController) && !isMissing(err) {
			s.missed(host, err)
		}
	})
}

// answers takes in that a host answers.
func (s *streams) answers(host string) {
	s.mu.Lock()
	f := s.at(host)
	back := f.away
	f.away, f.lacks, s.heard = false, nil, true
	s.mu.Unlock()
	if back {
		s.note("host " + host + " answers; " + s.what + " are followed")
	}
}

// missed says once that a host does not answer.
func (s *streams) missed(host string, err error) {
	s.mu.Lock()
	f := s.at(host)
	said := f.away || f.running
	f.away = f.away || !said
	s.mu.Unlock()
	if !said {
		s.note(err.Error() + "; it goes on, and " + s.what + " are followed when it answers")
	}
}
