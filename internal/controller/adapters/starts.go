package adapters

import (
	"fmt"
	"strings"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
)

// A host reports an adapter when it has connected it, which is later than it has claimed its port. What it reported
// before says nothing about a guest that is being started, so that the port is in use from the claim on, until the host
// says what came of it.
const (
	// ClaimingTime bounds how long a claim may be under way.
	ClaimingTime = 30 * time.Second
	// StartingTime is how long a host may take to connect an adapter whose port it has been given, and to say so.
	// Agents of the version before say nothing of a guest whose start has failed.
	StartingTime = 5 * time.Second
	// startingLook is how often what is over is looked for.
	startingLook = time.Second
	// mostStarting is how many adapters count that a host says it is connecting when it comes.
	mostStarting = 256
)

// Starts are the adapters whose ports hosts have claimed and not reported yet.
type Starts struct {
	mu    sync.Mutex
	hosts map[string]*starting // by id
}

// starting is one host.
type starting struct {
	until  map[part.Adapter]time.Time // when that is over
	looked time.Time
	lost   time.Time // since when the host has no connection to this controller; zero while it has one
}

// of is a host; one that was removed, and says or loses something afterwards, does not come back by that. The caller
// holds the lock, and does not change what a host that is not there has.
func (s *Starts) of(host string) *starting {
	if h := s.hosts[host]; h != nil {
		return h
	}
	return &starting{}
}

// made is of, with a host that is not there. The caller holds the lock.
func (s *Starts) made(host string) *starting {
	if s.hosts == nil {
		s.hosts = map[string]*starting{}
	}
	if s.hosts[host] == nil {
		s.hosts[host] = &starting{until: map[part.Adapter]time.Time{}}
	}
	return s.hosts[host]
}

// Begin takes in that an adapter is being connected on a host, for that long at most; 0 = it is not.
func (s *Starts) Begin(host string, n part.Adapter, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, now := s.made(host), time.Now()
	if now.Sub(h.looked) > startingLook && h.lost.IsZero() {
		h.looked = now
		for other, until := range h.until {
			if !now.Before(until) {
				delete(h.until, other)
			}
		}
	}
	if h.until[n] = now.Add(d); d == 0 {
		delete(h.until, n)
	}
}

// ended takes in the adapters whose connecting has ended.
func (s *Starts) ended(host string, list []*controllerv1.ClaimedAdapter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range list {
		delete(s.of(host).until, part.AdapterOf(a.GetVm(), a.GetAdapter()))
	}
}

// reported takes in ports that a host has reported.
func (s *Starts) reported(host string, ports []*controllerv1.HostPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range ports {
		delete(s.of(host).until, part.AdapterOf(p.GetVm(), p.GetAdapter()))
	}
}

// Arrived takes in the adapters that a host was connecting when it came from another controller, which has held their
// ports for it. The host says what comes of them.
func (s *Starts) Arrived(host string, list []*controllerv1.ClaimedAdapter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.made(host)
	h.lost = time.Time{}
	for _, a := range list[:min(len(list), mostStarting)] {
		h.until[part.AdapterOf(strings.ToLower(a.GetVm()), a.GetAdapter())] = time.Now().Add(ClaimingTime)
	}
}

// left takes in that a host has lost its connection.
func (s *Starts) left(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[host]; h != nil {
		h.lost = time.Now()
	}
}

// removed forgets a host.
func (s *Starts) removed(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hosts, host)
}

// On reports whether an adapter is being connected on a host; of one that is lost, whether it was then.
func (s *Starts) On(host string, n part.Adapter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(host).on(n)
}

func (h starting) on(n part.Adapter) bool {
	end := time.Now()
	if !h.lost.IsZero() {
		end = h.lost
	}
	return end.Before(h.until[n])
}

// Here are the adapters that are being connected on a host, for another controller.
func (s *Starts) Here(host string) (list []*controllerv1.ClaimedAdapter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.of(host)
	for n := range h.until {
		if h.on(n) {
			list = append(list, &controllerv1.ClaimedAdapter{Vm: n.VM, Adapter: n.Name})
		}
	}
	return list
}

// StartsText says that an adapter is being connected on a host.
func StartsText(n part.Adapter, host string) string {
	return fmt.Sprintf("adapter %s of VM %s is being connected on host %s", n.Name, n.VM, host)
}
