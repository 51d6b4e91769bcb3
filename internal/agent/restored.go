package agent

import (
	"fmt"
	"time"

	"heddle/internal/api"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
)

// restoring knows when the kernel is to be asked whether it still has what the agent once set on the host's side: the
// addresses, routes, MAC and MTU of host ports' interfaces, promiscuous mode and silenced IPv6. Others take them away:
// network managers, ifdown, an operator. They are compared when the kernel reports a change of such an interface, when
// a configuration is applied, and once a minute.
type restoring struct {
	*shared

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

// noted takes a notification: it reports whether the kernel changed what the agent has set on an interface of the
// host's.
func (rs *restoring) noted(n hostdev.Note) bool {
	if !n.Route() && !rs.ends[n.Local()] {
		return false
	}
	rs.doubt = true
	return true
}

// follow makes the device one whose notifications are looked at.
func (rs *restoring) follow(host hostdev.Device) {
	if rs.ends == nil {
		rs.ends = map[uint32]bool{}
	}
	rs.ends[host.Index] = true
}

// everything has all settings compared at the next reconcile. Ends that are gone are forgotten: those that are there
// are found again.
func (rs *restoring) everything() { rs.doubt, rs.all, rs.ends = true, true, nil }

// doubts reports whether interfaces are to be compared.
func (rs *restoring) doubts() bool { return rs.doubt }

// settled: the kernel has been asked.
func (rs *restoring) settled() { rs.doubt, rs.all = false, false }

// restored says that something of a port was no longer there, and is again.
func (rs *restoring) restored(b plan.PortID, uplink bool, device, what string) {
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
	e := about(kind, b)
	e.Kind, e.Device, e.Text = event.Restored, device, text
	rs.events.Publish(e)
}

// collecting has what f restores added to a command's effects.
func (rs *restoring) collecting(to *[]api.Effect, f func() error) error {
	rs.doubt, rs.effects = true, to
	defer func() { rs.effects = nil }()
	return f()
}
