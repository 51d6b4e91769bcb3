package locations

import (
	"context"
	"errors"
	"slices"

	"heddle/internal/spec"
)

// Peers are the endpoints of other hosts that the controllers have told, for a switch that they define, as a file lists
// them. It does not list the MACs behind them: a file's word counts more than what frames show, and would hold a guest
// to its host for ever. Frames for all of a segment reach every peer, and show where the guests are.
func (l *Part) Peers(name string) (list []spec.TunnelPeer) {
	sw := l.host.Active().Plan.Switch(name)
	if sw == nil || sw.Tunnel == nil || !l.IsDefined(name) || l.host.Active().Applied == nil {
		return nil
	}
	own := l.host.Active().Applied.Facts[sw.Tunnel.ID].Endpoints
	for _, e := range l.Reach(sw).Endpoints {
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
func (l *Part) left() (err error) {
	for name := range l.told {
		if l.IsDefined(name) {
			continue
		}
		err = errors.Join(err, l.host.Kernel().Locate(name, true, nil, nil), l.host.Kernel().Bind(name, true, nil, nil))
		delete(l.told, name)
	}
	return err
}

// Left forgets what the controllers have said, since the host has left its cluster. It is called beside the loop.
func (l *Part) Left(ctx context.Context) {
	if l.keeper != nil {
		if err := l.keeper.Forget(); err != nil {
			l.host.Log.Error("what was known of overlay segments cannot be removed", "err", err)
		}
	}
	if err := l.host.Loop.Do(ctx, l.left); err != nil {
		l.host.Log.Error("what the controllers said of overlay segments is still in the kernel", "err", err)
	}
}
