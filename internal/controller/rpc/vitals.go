package rpc

import (
	"context"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
	"heddle/internal/controller/rollout/vitals"
)

// ReadVitalsHere reads what hosts have counted that are connected to this controller.
func (o others) ReadVitalsHere(ctx context.Context, q *controllerv1.ReadVitalsHereRequest) (
	*controllerv1.ReadVitalsHereResponse, error) {
	if _, err := controllerOf(ctx); err != nil {
		return nil, err
	}
	return &controllerv1.ReadVitalsHereResponse{Hosts: vitalsOf(o.Server).Read(ctx, q.GetNames())}, nil
}

// vitals are the hosts that are connected here, with the states of their ports and uplinks as they said last.
func (o openRollouts) vitals(names []string) (list []*controllerv1.HostVitals) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range names {
		h := o.names[name]
		if h == nil || h.conn == nil {
			continue
		}
		out := &controllerv1.HostVitals{Name: name, Start: []byte(h.conn.start)}
		for _, sw := range h.switches {
			s := &controllerv1.SwitchVitals{Name: sw.GetName()}
			for _, u := range sw.GetUplinks() {
				if u.GetState() == string(api.Up) {
					s.LinksUp++
				}
			}
			out.Switches = append(out.Switches, s)
		}
		for sw, shut := range h.report.portsShut() {
			vitals.OfSwitch(out, sw).PortsShut += shut
		}
		list = append(list, out)
	}
	return list
}
