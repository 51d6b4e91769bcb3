package agent

import (
	"errors"
	"slices"

	"heddle/internal/spec"
)

// peers are the endpoints of other hosts that the controllers have told, for a switch that they define, as a file lists
// them. It does not list the MACs behind them: a file's word counts more than what frames show, and would hold a guest
// to its host for ever. Frames for all of a segment reach every peer, and show where the guests are.
func (l *locating) peers(name string) (list []spec.TunnelPeer) {
	sw := l.Active().Plan.Switch(name)
	if sw == nil || sw.Tunnel == nil || !l.isDefined(name) || l.Active().Applied == nil {
		return nil
	}
	own := l.Active().Applied.Facts[sw.Tunnel.ID].Endpoints
	for _, e := range l.reach(sw).Endpoints {
		if slices.Contains(own, e.Address) {
			continue
		}
		p := spec.TunnelPeer{Name: e.Host, Address: e.Address.String()}
		if e.Subnet.IsValid() {
			p.Subnet = e.Subnet.String()
		}
		list = append(list, p)
	}
	return list
}

// left has the kernel forget what controllers have told of switches that they do not define any more: nobody would take
// it back.
func (l *locating) left() (err error) {
	for name := range l.told {
		if l.isDefined(name) {
			continue
		}
		err = errors.Join(err, l.kernel.Locate(name, true, nil, nil), l.kernel.Bind(name, true, nil, nil))
		delete(l.told, name)
	}
	return err
}
