package rpc

import (
	"fmt"
	"slices"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/adapters"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/part"
	"heddle/internal/platform/peers"
)

// resolve lets all controllers ask the others about hosts in doubt.
func (s *site) resolve() {
	s.t.Helper()
	s.tell()
	for i, f := range s.fleets {
		f.adapters.Resolve(func(names []string) adapters.Stopped {
			there := &fanout.Answers{Hosts: map[string]*controllerv1.HostHere{}}
			for k, other := range s.fleets {
				if k == i || len(names) == 0 {
					continue
				}
				for _, h := range (&Server{fleet: other, Roster: peers.New(nil)}).hostsHere(names, true) {
					there.Take(h)
				}
			}
			return stoppedBy(f, there, time.Minute, peers.New(nil).SilentSince)
		})
	}
	s.tell()
}

// leaves ends the connection of a host, which knows the marks that it was told.
func (s *site) leaves(host string, p *controllerv1.HostPort) *controllerv1.HostPort {
	m := s.hosts[host]
	for _, mark := range m.marks() {
		p.Conflict, p.Rival, p.Rivals = mark.Text, true, mark.Rivals
	}
	m.f.leave(m.host, m.conn)
	return p
}

// marks are those of the host at its controller.
func (m *member) marks() map[part.Adapter]adapters.Mark { return m.f.adapters.Marks(m.host.id) }

// marked are the hosts that are marked, by the controllers that have them.
func (s *site) marked() (names []string) {
	for name, m := range s.hosts {
		if m.host.conn == m.conn && len(m.marks()) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// clash is a site with guests of one VM on h1 and h2, which are marked.
func clash(t *testing.T, controllers int) *site {
	s := newSite(t, controllers)
	for i, host := range []string{"h1", "h2"} {
		s.at(host, i%controllers, serves(uint64(i+1)))
	}
	s.tell()
	for i, host := range []string{"h1", "h2"} {
		s.answers(host, serves(uint64(i+1)))
	}
	s.are("at first", "h1", "h2")
	return s
}

// are makes sure which hosts are marked.
func (s *site) are(when string, want ...string) {
	s.t.Helper()
	if got := s.marked(); !slices.Equal(got, want) {
		s.t.Errorf("%s %q are marked, want %q", when, got, want)
	}
}

// Controllers restart one after the other and have heard of nobody for a while: both hosts stay marked, whatever the
// controllers that know less say. The mark goes when a host says that its guest has stopped.
func TestS78_AMarkStaysWhileControllersRestart(t *testing.T) {
	for controllers := 1; controllers <= 3; controllers++ {
		t.Run(fmt.Sprint(controllers, " controllers"), func(t *testing.T) {
			s := clash(t, controllers)
			has := map[string]*controllerv1.HostPort{"h1": serves(1), "h2": serves(2)}
			for round := range 2 * controllers {
				down, next := round%controllers, (round+1)%controllers
				var moved []string
				for name, m := range s.hosts {
					if m.f == s.fleets[down] {
						has[name] = s.leaves(name, has[name])
						moved = append(moved, name)
					}
				}
				s.resolve()
				s.fleets[down] = s.controller() // it knows nobody
				s.resolve()
				s.resolve()
				for name, m := range s.hosts {
					if !slices.Contains(moved, name) && len(m.marks()) == 0 {
						t.Errorf("%s is marked no more while controller %d has heard of nobody", name, down)
					}
				}
				slices.Sort(moved)
				for _, name := range moved {
					s.at(name, next, has[name])
					s.resolve()
					if m := s.hosts[name]; len(m.marks()) == 0 {
						t.Errorf("%s is marked no more when it comes to controller %d", name, next)
					}
				}
				s.answers("h1", has["h1"])
				s.answers("h2", has["h2"])
				s.resolve()
				s.are("after a restart", "h1", "h2")
			}
			s.hosts["h2"].reports(waiting(2), 0)
			s.resolve()
			s.are("when the guest on h2 has stopped,")
		})
	}
}

// A host that was away, and has stopped its guest meanwhile, ends the other one's mark by what it says, to whichever
// controller. One that stays away ends it when its lease is over, and one that is taken out of the cluster at once.
func TestS78_AMarkEndsByWhatIsKnown(t *testing.T) {
	for name, end := range map[string]func(s *site){
		"it comes back without the guest": func(s *site) { s.at("h2", 2, waiting(2)) },
		"its lease is over": func(s *site) {
			s.resolve()
			s.are("while the lease lasts", "h1")
			for _, f := range s.fleets {
				f.hosts["id-h2"].since = time.Now().Add(-time.Hour)
			}
		},
		"it is removed": func(s *site) {
			for _, f := range s.fleets {
				f.mu.Lock()
				f.removed("h2")
				f.mu.Unlock()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := clash(t, 3)
			s.leaves("h2", serves(2))
			s.resolve()
			s.are("when h2 has left", "h1")
			end(s)
			s.resolve()
			s.are("in the end")
		})
	}
}

// What a host said before it began to run the guest, to a controller that it has left since, is no word of its end.
func TestS78_AnOldReportEndsNoMark(t *testing.T) {
	s := newSite(t, 3)
	s.at("h2", 2, nil)
	s.leaves("h2", serves(2)) // it goes to another controller, where its guest starts
	s.at("h1", 0, serves(1))
	s.at("h2", 1, serves(2))
	s.tell()
	s.answers("h1", serves(1))
	s.answers("h2", serves(2))
	s.are("at first", "h1", "h2")
	s.leaves("h2", serves(2))
	s.fleets[1] = s.controller()
	s.resolve()
	s.are("while the controller that knows is away", "h1")
}
