package rpc

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/api"
	"heddle/internal/controller/probes"
	"heddle/internal/fabric"
	"heddle/internal/fabric/wire"
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

// probesPause is how often other controllers are asked for what their hosts found.
const probesPause = 2 * time.Second

// learnProbes asks the other controllers for what their hosts found, until ctx ends.
func (s spanning) learnProbes(ctx context.Context) {
	asked := map[string]bool{}
	for {
		select {
		case <-time.After(probesPause):
		case <-ctx.Done():
			return
		}
		now := map[string]bool{}
		for _, a := range askOthersOf(ctx, s) {
			now[a.Of.ID] = true
			switch {
			case a.Err == nil:
				s.probes.Learn(a.Of.ID, a.Got, func(id string) bool { return segmenting{s.fleet}.nameOf(id) != "" })
			case ctx.Err() == nil:
				s.Log.Debug("another controller does not say what its hosts found by probes", "controller",
					peers.NameOf(a.Of), "err", a.Err)
				s.probes.Lost(a.Of.ID)
			}
		}
		for id := range asked {
			if !now[id] {
				s.probes.Lost(id)
			}
		}
		asked = now
	}
}

// askOthersOf asks each other controller for what it has not said yet, all at the same time.
func askOthersOf(ctx context.Context, s spanning) (list []peers.Answer[*controllerv1.ReadProbesHereResponse]) {
	got := make(chan peers.Answer[*controllerv1.ReadProbesHereResponse])
	others := s.Others()
	for _, c := range others {
		go func() {
			got <- peers.AskThese(ctx, s.Roster, []peers.Controller{c}, peers.AskTime, func(ctx context.Context,
				k *peers.Link) (
				*controllerv1.ReadProbesHereResponse, error) {
				return k.ReadProbesHere(ctx, s.probes.Asks(c.ID))
			})[0]
		}()
	}
	for range others {
		list = append(list, <-got)
	}
	return list
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

// networkHealth shows people what the probes have found.
type networkHealth Front

// GetNetworkHealth is what is wrong with the physical network.
func (v networkHealth) GetNetworkHealth(context.Context, *controllerv1.GetNetworkHealthRequest) (
	*controllerv1.GetNetworkHealthResponse, error) {
	found, hosts := v.probes.Verdict()
	return &controllerv1.GetNetworkHealthResponse{Findings: wire.Findings(found.Findings), Hosts: uint32(hosts),
		Uplinks: uint32(found.Uplinks), Vlans: uint32(found.VLANs), Paths: uint32(found.Paths),
		Passing: uint32(found.Passing), Waiting: uint32(found.Waiting), Lonely: uint32(found.Lonely),
		Tunnels: uint32(found.Tunnels), TunnelsPassing: uint32(found.TunnelsPassing),
		TunnelsWaiting: uint32(found.TunnelsWaiting)}, nil
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
