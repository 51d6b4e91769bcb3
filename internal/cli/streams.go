package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	what  string // "its events are followed"
	// follow follows one host until it is away; heard is called when it answers.
	follow func(ctx context.Context, client api.Service, host string, heard func()) error
	// Named: what is asked for has a name, and hosts that are away matter only where one has it.
	Named bool
	// Only says which hosts are followed; nil for all.
	Only func(host string) bool

	wake chan struct{} // a host is over, does not have what is asked for, or refuses it

	mu     sync.Mutex
	hosts  map[string]*streamed
	heard  bool // some host has answered
	missed bool // some host was away, or refused, for a time
}

// streamed is how one host is followed.
type streamed struct {
	running bool
	heard   bool      // it has answered once
	away    bool      // which has been said
	later   time.Time // it does not have what is asked for or refuses it, and is asked again then
	lacks   error
	refused bool // lacks is that it refuses, and has been said
	over    bool // it is not followed again
}

// ErrOver says that a host need not be followed again.
var ErrOver = errors.New("over")

// askAgain is how soon a host is asked again that did not have what is asked for.
const askAgain = 10 * time.Second

func NewStreams(d Deps, fleet *api.Fleet, what string, follow func(context.Context, api.Service, string,
	func()) error) *streams {
	return &streams{d: d, fleet: fleet, what: what, follow: follow, hosts: map[string]*streamed{},
		wake: make(chan struct{}, 1)}
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

// KnowsAway takes in that somebody has been told that a host is away.
func (s *streams) KnowsAway(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at(host).away = true
}

// Away are the hosts that are not followed now, since they are away.
func (s *streams) Away() (list []string) {
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

// Awaited are the hosts that are followed and have never answered.
func (s *streams) Awaited() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for host, f := range s.hosts {
		if f.running && !f.heard && !f.away {
			list = append(list, host)
		}
	}
	return list
}

// Run follows until ctx ends, or all hosts that are connected are over. The error is of the first look at the cluster,
// or that no host has what is asked for.
func (s *streams) Run(ctx context.Context) error {
	var g sync.WaitGroup
	defer g.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := false // the controller, which has been said
	for first := true; ctx.Err() == nil; first = false {
		list, err := hostsWithin(ctx, s.fleet)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil && !gone:
			s.noController(err)
			gone = true
		case err == nil:
			gone = false
			for _, h := range list.Hosts {
				if s.Only != nil && !s.Only(h.Name) {
					continue
				}
				if h.State != api.HostDisconnected {
					s.begin(ctx, h.Name, &g)
				}
			}
			s.notConnected(list.Hosts)
			if over, err := s.nobody(list.Hosts); over || err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-time.After(redialEvery):
		}
	}
	return nil
}

// noController says that no controller answers.
func (s *streams) noController(err error) {
	s.mu.Lock()
	s.missed = true
	s.mu.Unlock()
	s.note(fmt.Sprintf("%v; the hosts go on, and %s when a controller answers", err, s.what))
}

// notConnected says which hosts are away; of what has a name, those that are not between two controllers, and only once
// another has it or all are away.
func (s *streams) notConnected(hosts []api.FleetHost) {
	s.mu.Lock()
	matter := !s.Named || s.heard || !slices.ContainsFunc(hosts, func(h api.FleetHost) bool {
		return h.State != api.HostDisconnected
	})
	s.mu.Unlock()
	for _, h := range hosts {
		if matter && h.State == api.HostDisconnected && !(s.Named && justNow(h.Since)) &&
			(s.Only == nil || s.Only(h.Name)) {
			s.lost(h.Name, &api.AwayError{Host: h.Name, Why: "it is not connected to a controller"})
		}
	}
}

// Ended is the error of what ran until ctx ended: its own, or why ctx ended where nobody interrupted it.
func Ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return errors.Join(err, cause)
	}
	return err
}

// nobody is the error where all hosts that are connected have said that they do not have what is asked for, or refused
// it. Where some have it, it names those that refuse; over says that all of these are over.
func (s *streams) nobody(hosts []api.FleetHost) (over bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard {
		s.refusals()
	}
	var lacking []string
	for _, h := range hosts {
		switch f := s.at(h.Name); {
		case s.Only != nil && !s.Only(h.Name):
		case f.over:
			over = true
		case f.lacks != nil:
			lacking = append(lacking, h.Name)
		case h.State != api.HostDisconnected:
			return false, nil
		}
	}
	if s.heard {
		return over, nil
	}
	return over, s.lackedBy(lacking)
}

// lackedBy is the error where none of these hosts has what is asked for: what all of them say, or else what one says,
// with its name. That one refuses is more to the point than that another has nothing. The caller holds the lock.
func (s *streams) lackedBy(hosts []string) error {
	if len(hosts) == 0 {
		return nil
	}
	best, said := hosts[0], map[string]bool{}
	for _, host := range hosts {
		err := s.hosts[host].lacks
		said[err.Error()] = true
		if IsFault(err) && !IsFault(s.hosts[best].lacks) {
			best = host
		}
	}
	if len(said) == 1 {
		return s.hosts[best].lacks
	}
	return fmt.Errorf("host %s: %w", best, s.hosts[best].lacks)
}

// refusals says once which hosts refuse. The caller holds the lock.
func (s *streams) refusals() {
	for _, host := range slices.Sorted(maps.Keys(s.hosts)) {
		if f := s.hosts[host]; IsFault(f.lacks) && !f.refused {
			f.refused, s.missed = true, true
			s.note("host " + host + ": " + f.lacks.Error())
		}
	}
}

// EverMissed says that some host was away, or refused, for a time.
func (s *streams) EverMissed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missed
}

// hostsWithin are the hosts, asked for no longer than a call may take.
func hostsWithin(ctx context.Context, fleet *api.Fleet) (*api.FleetHosts, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	return fleet.Hosts(ctx)
}

func SleepFor(ctx context.Context, d time.Duration) {
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
	skip := f.running || f.over || time.Now().Before(f.later)
	f.running = f.running || !skip
	s.mu.Unlock()
	if skip {
		return
	}
	g.Go(func() {
		err := s.follow(ctx, s.fleet.Host(host), host, func() { s.answers(host) })
		s.mu.Lock()
		f.running, f.over = false, errors.Is(err, ErrOver)
		lacks := err != nil && (IsMissing(err) || IsFault(err))
		if lacks {
			f.lacks, f.later = err, time.Now().Add(askAgain)
		}
		s.mu.Unlock()
		if lacks || errors.Is(err, ErrOver) {
			select {
			case s.wake <- struct{}{}:
			default:
			}
			return
		}
		// The controller is asked next, which knows whether it is the host that is away.
		if err != nil && ctx.Err() == nil && !errors.Is(err, api.ErrNoController) {
			s.lost(host, err)
		}
	})
}

// answers takes in that a host answers.
func (s *streams) answers(host string) {
	s.mu.Lock()
	f := s.at(host)
	back := f.away
	f.heard, f.away, f.lacks, f.refused, s.heard = true, false, nil, false, true
	s.mu.Unlock()
	if back {
		s.note("host " + host + " answers; " + s.what)
	}
}

// lost says once that a host does not answer.
func (s *streams) lost(host string, err error) {
	s.mu.Lock()
	f := s.at(host)
	said := f.away || f.running
	f.away, s.missed = f.away || !said, true
	s.mu.Unlock()
	if !said {
		s.note(err.Error() + "; it goes on, and " + s.what + " when it answers")
	}
}
