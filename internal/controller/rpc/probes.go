package rpc

import (
	"context"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/api"
	"heddle/internal/controller/probes"
	"heddle/internal/fabric"
	"heddle/internal/platform/peers"
)

// FollowProbes hands a host whom to probe, and takes what it finds. That rests on nothing that etcd has to confirm.
func (s spanning) FollowProbes(ctx context.Context,
	stream controllerv1connect.HostServiceFollowProbesServerStream) error {
	always := func() error { return nil }
	return besideSlice(ctx, s, stream, always, func(ctx context.Context, id, name string,
		first *controllerv1.FollowProbesRequest) error {
		return s.probes.Follow(ctx, probes.Host{ID: id, Name: name}, first, stream)
	})
}

// ReadProbesHere says what hosts of this controller have found by their probes.
func (o others) ReadProbesHere(ctx context.Context, q *controllerv1.ReadProbesHereRequest) (
	*controllerv1.ReadProbesHereResponse, error) {
	if _, err := controllerOf(ctx); err != nil {
		return nil, err
	}
	return o.probes.Read(q), nil
}

// connected are the hosts that are connected here and whose agents are of another version than this controller, with
// since when: only these may not know probes.
func (s spanning) connected() map[string]probes.Connected {
	f := s.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]probes.Connected{}
	for id, h := range f.hosts {
		if h.conn != nil && h.agent != s.This.Version {
			all[id] = probes.Connected{Name: h.doc.Name, Since: h.since}
		}
	}
	return all
}

// notHere are the names of the hosts that are not connected here.
func notHere(f *fleet) map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]bool{}
	for _, h := range f.hosts {
		if h.conn == nil {
			all[h.doc.Name] = true
		}
	}
	return all
}

// idsOf are the ids of controllers.
func idsOf(list []peers.Controller) (ids []string) {
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}

// verdict is what follows from the probes of all hosts.
func (s Front) verdict() *fabric.Verdict {
	found, _ := s.probes.Verdict()
	return found
}

// physical are the findings about the physical network.
func (s Front) physical() (list []api.HealthFinding) {
	found, _ := s.probes.Verdict()
	for _, f := range found.Findings {
		level := api.HealthWrong
		if f.Note {
			level = api.HealthNote
		}
		list = append(list, api.HealthFinding{Check: "network", Level: level, Text: f.Text, Remedy: f.Remedy})
	}
	return list
}
