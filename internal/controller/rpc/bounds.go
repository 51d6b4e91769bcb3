package rpc

import (
	"slices"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/slice"
)

// reported takes in what a host reports: of it, ports in port groups of switches that the host has, by the definition
// or by the one that is active there still. A host speaks for nothing else (S104). The caller holds the lock.
func (f *fleet) reported(h *host, c *conn, r *controllerv1.HostReport) {
	set, err := f.target(h)
	if err != nil {
		return // the definition is damaged: what was reported before stays
	}
	sets := []*slice.Set{set}
	if active, ok := f.sets[h.active.hash]; ok && h.active.known {
		sets = append(sets, active)
	}
	var beyond *controllerv1.HostPort
	ports := slices.DeleteFunc(slices.Clone(r.GetPorts()), func(p *controllerv1.HostPort) bool {
		key := slice.Key{Kind: slice.PortGroup, Name: p.GetSwitch() + "/" + p.GetPortGroup()}
		for _, s := range sets {
			if _, ok := s.Get(key); ok {
				return false
			}
		}
		beyond = p
		return true
	})
	if beyond != nil && !c.beyond {
		c.beyond = true
		f.log.Warn("a host reports ports that are not its to report; they are left out", "host", h.doc.Name,
			"address", c.address, "ports", len(r.GetPorts())-len(ports), "one", beyond.GetName(),
			"switch", beyond.GetSwitch(), "group", beyond.GetPortGroup())
	}
	h.report = &controllerv1.HostReport{Ports: ports, Warnings: r.GetWarnings()}
}
