package rpc

import (
	"fmt"
	"log/slog"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/hostwords"
	"heddle/internal/slice"
	"heddle/internal/spec/printable"
)

// keepWhole is keep of a whole report. The caller holds the lock.
func (f *fleet) keepWhole(h *host, c *conn, r *controllerv1.HostReport) (kept []*controllerv1.HostPort, ok bool) {
	return f.keep(h, c, func(its func(*controllerv1.HostPort) bool) (*report, error) {
		return newReport(r.GetPorts(), r.GetWarnings(), its)
	})
}

// amended takes in what is another since a host's last report. The caller holds the lock.
func (f *fleet) amended(h *host, c *conn, change *controllerv1.HostReportChange) {
	kept, ok := f.keep(h, c, func(its func(*controllerv1.HostPort) bool) (*report, error) {
		return h.report.changed(change, its)
	})
	if ok {
		f.adapters.Amended(h.id, kept, change.GetRemoved())
	}
}

// keep takes in a report of a host: of it, ports in port groups of switches that the host has, by the definition or by
// the one that is active there still, and those in port groups that the definition lacks altogether. A host speaks for
// nothing else (S104). What it brings of those is given back. The caller holds the lock.
func (f *fleet) keep(h *host, c *conn, make func(its func(*controllerv1.HostPort) bool) (*report, error)) (
	kept []*controllerv1.HostPort, ok bool) {
	set, err := f.target(h)
	if err != nil {
		return nil, false // the definition is damaged: what was reported before stays
	}
	sets := []*slice.Set{set}
	if active := (contents{f}).remembered(h, h.active.hash); active != nil && h.active.known {
		sets = append(sets, active)
	}
	var beyond *controllerv1.HostPort
	left := 0
	next, err := make(func(p *controllerv1.HostPort) bool {
		key := slice.Key{Kind: slice.PortGroup, Name: p.GetSwitch() + "/" + p.GetPortGroup()}
		for _, s := range sets {
			if _, ok := s.Get(key); ok {
				kept = append(kept, p)
				return true
			}
		}
		if _, defined := f.inventory.Objects().Get(key); p.GetKept() && !defined {
			kept = append(kept, p) // nobody has the port group any more
			return true
		}
		beyond = p
		left++
		return false
	})
	if err != nil {
		f.log.Error("what a host reports cannot be kept", "host", h.doc.Name, "err", err)
		return nil, false
	}
	if beyond != nil && !c.beyond {
		c.beyond = true
		short := func(text string) string { return printable.Short(text, hostwords.MostName) }
		h.say(f.log, slog.LevelWarn, "a host reports ports that are not its to report; they are left out", "host",
			h.doc.Name, "address", c.address, "ports", left, "one", short(beyond.GetName()), "switch",
			short(beyond.GetSwitch()), "group", short(beyond.GetPortGroup()))
	}
	if len(next.wire) > maxBody { // by changes; a whole report is bounded as a message
		c.end(connect.NewError(connect.CodeResourceExhausted,
			fmt.Sprintf("the host reports %d ports, which are more than a host can have", next.ports)))
		return nil, false
	}
	h.report = next
	return kept, true
}
