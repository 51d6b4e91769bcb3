package held

import (
	"fmt"
	"log/slog"
	"time"

	"heddle/internal/api"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
)

// Restoring knows when the kernel is to be asked whether it still has what the agent once set on the host's side: the
// addresses, routes, MAC and MTU of host ports' interfaces, promiscuous mode and silenced IPv6. Others take them away:
// network managers, ifdown, an operator. They are compared when the kernel reports a change of such an interface, when
// a configuration is applied, and once a minute.
type Restoring struct {
	log    *slog.Logger
	events *event.Bus

	// doubt: host ports' interfaces are to be compared with the plan at the next reconcile.
	doubt bool
	// all: so are the settings of all devices.
	all bool
	// ends are the host's ends of the pairs of host ports, by ifindex.
	ends map[uint32]bool
	// told is when the last event about the same was published.
	told map[string]time.Time
	// effects collects what a command's reconcile restored, nil while none runs.
	effects *[]api.Effect
}

// repeatAfter is how long nothing is said again of the same.
const repeatAfter = time.Minute

// NewRestoring returns one that doubts nothing.
func NewRestoring(log *slog.Logger, events *event.Bus) *Restoring {
	return &Restoring{log: log, events: events}
}

// asksAll reports whether the settings of all devices are to be compared.
func (rs *Restoring) asksAll() bool { return rs.all }

// Doubt has host ports' interfaces compared with the plan at the next reconcile.
func (rs *Restoring) Doubt() { rs.doubt = true }

// Noted takes a notification: it reports whether the kernel changed what the agent has set on an interface of the
// host's.
func (rs *Restoring) Noted(n hostdev.Note) bool {
	if !n.Route() && !rs.ends[n.Local()] {
		return false
	}
	rs.doubt = true
	return true
}

// follow makes the device one whose notifications are looked at.
func (rs *Restoring) follow(host hostdev.Device) {
	if rs.ends == nil {
		rs.ends = map[uint32]bool{}
	}
	rs.ends[host.Index] = true
}

// Everything has all settings compared at the next reconcile. Ends that are gone are forgotten: those that are there
// are found again.
func (rs *Restoring) Everything() { rs.doubt, rs.all, rs.ends = true, true, nil }

// Doubts reports whether interfaces are to be compared.
func (rs *Restoring) Doubts() bool { return rs.doubt }

// Settled takes in that the kernel has been asked.
func (rs *Restoring) Settled() { rs.doubt, rs.all = false, false }

// Restored says that something of a port was no longer there, and is again.
func (rs *Restoring) Restored(b plan.PortID, uplink bool, device, what string) {
	kind := map[bool]string{true: "uplink", false: "port"}[uplink]
	text := fmt.Sprintf("%s %s: %s of device %s was taken away, and is restored", kind, b.Name, what, device)
	if rs.effects != nil {
		*rs.effects = append(*rs.effects, api.Effect{Kind: api.EffectRestored, Switch: b.Switch, Ports: 1, Port: b.Name,
			Text: text})
	}
	key, now := device+"\x00"+what, time.Now()
	if now.Sub(rs.told[key]) < repeatAfter {
		return
	}
	if rs.told == nil || len(rs.told) > 1024 {
		rs.told = map[string]time.Time{}
	}
	rs.told[key] = now
	rs.log.Warn("restored what somebody else took away", kind, b.String(), "device", device, "what", what)
	e := event.Event{Kind: event.Restored, Switch: b.Switch, Port: b.Name, Device: device, Text: text}
	if uplink {
		e.Port, e.Uplink = "", b.Name
	}
	rs.events.Publish(e)
}

// Collecting has what f restores added to a command's effects.
func (rs *Restoring) Collecting(to *[]api.Effect, f func() error) error {
	rs.doubt, rs.effects = true, to
	defer func() { rs.effects = nil }()
	return f()
}
