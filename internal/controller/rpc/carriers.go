package rpc

import (
	"bytes"
	"context"
	"slices"
	"strings"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/peers"
)

// carriers are the hosts connected here that run a controller's machine as a VM: a port there has the MAC of an adapter
// of it, and a device. Reports are searched as they came, since nearly none of them has such a port.
func carriers(f *fleet, all []peers.Controller) (list []*controllerv1.ControllerCarrier) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.hosts {
		if h.conn == nil || h.report == nil {
			continue
		}
		for _, c := range all {
			if slices.ContainsFunc(strings.Fields(c.MACs), h.report.carries) {
				list = append(list, &controllerv1.ControllerCarrier{Controller: c.ID, Host: h.doc.Name})
			}
		}
	}
	return list
}

// carries reports whether a guest runs by a port with that MAC.
func (r *report) carries(mac string) bool {
	if !bytes.Contains(r.wire, []byte(mac)) {
		return false
	}
	for p := range r.all() {
		if p.GetMac() == mac && !p.GetAbsent() && !p.GetWaits() && p.GetRole() == "" {
			return true
		}
	}
	return false
}

// carried are the hosts on which controllers' machines are VMs, by the controllers' ids, as all controllers that answer
// see it.
func (s *Server) carried(ctx context.Context) map[string]string {
	list := carriers(s.fleet, s.Cluster())
	for _, a := range peers.AskOthers(ctx, s.Roster, peers.AskTime, func(ctx context.Context, k *peers.Link) (
		*controllerv1.GetControllerResponse, error) {
		return k.GetController(ctx, &controllerv1.GetControllerRequest{})
	}) {
		if a.Err == nil {
			list = append(list, a.Got.GetCarriers()...)
		}
	}
	on := map[string]string{}
	for _, c := range list {
		on[c.GetController()] = c.GetHost()
	}
	return on
}
