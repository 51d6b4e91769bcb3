package rpc

import (
	"fmt"
	"strings"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// A host reports an adapter when it has connected it, which is later than it has claimed its port. What it reported
// before says nothing about a guest that is being started, so that the port is in use from the claim on, until the host
// says what came of it.
const (
	// claimingTime bounds how long a claim may be under way.
	claimingTime = 30 * time.Second
	// startingTime is how long a host may take to connect an adapter whose port it has been given, and to say so.
	// Agents of the version before say nothing of a guest whose start has failed.
	startingTime = 5 * time.Second
	// startingLook is how often what is over is looked for.
	startingLook = time.Second
)

// starts takes in that an adapter is being connected on a host, for that long at most; 0 = it is not.
func (f portKeeper) starts(h *host, n nic, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Sub(h.startingLooked) > startingLook && h.conn != nil {
		h.startingLooked = now
		for other, until := range h.starting {
			if !now.Before(until) {
				delete(h.starting, other)
			}
		}
	}
	if d == 0 {
		delete(h.starting, n)
		return
	}
	if h.starting == nil {
		h.starting = map[nic]time.Time{}
	}
	h.starting[n] = now.Add(d)
}

// started takes in the adapters whose connecting has ended. The caller holds the lock.
func (h *host) started(list []*controllerv1.ClaimedAdapter) {
	for _, a := range list {
		delete(h.starting, nic{a.GetVm(), a.GetAdapter()})
	}
}

// connecting takes in the adapters that a host was connecting when it came from another controller, which has held
// their ports for it. The host says what comes of them. The caller holds the lock.
func (h *host) connecting(list []*controllerv1.ClaimedAdapter) {
	for _, a := range list[:min(len(list), mostClaims)] {
		if h.starting == nil {
			h.starting = map[nic]time.Time{}
		}
		h.starting[nic{strings.ToLower(a.GetVm()), a.GetAdapter()}] = time.Now().Add(claimingTime)
	}
}

// startsOn reports whether an adapter is being connected on a host; of one that is lost, whether it was then. The
// caller holds the lock.
func (h *host) startsOn(n nic) bool {
	end := time.Now()
	if h.conn == nil {
		end = h.since
	}
	return end.Before(h.starting[n])
}

// startingHere are the adapters that are being connected on a host, for another controller. The caller holds the lock.
func (h *host) startingHere() (list []*controllerv1.ClaimedAdapter) {
	for n := range h.starting {
		if h.startsOn(n) {
			list = append(list, &controllerv1.ClaimedAdapter{Vm: n.vm, Adapter: n.adapter})
		}
	}
	return list
}

// starts reports whether an adapter is being connected on a host, by what the controller said that it is connected to.
func (e *elsewhere) starts(host string, n nic) bool {
	for _, a := range e.hosts[host].GetStarting() {
		if a.GetVm() == n.vm && a.GetAdapter() == n.adapter {
			return true
		}
	}
	return false
}

func startsText(n nic, host string) string {
	return fmt.Sprintf("adapter %s of VM %s is being connected on host %s", n.adapter, n.vm, host)
}
