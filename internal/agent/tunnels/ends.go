package tunnels

import (
	"context"
	"fmt"
	"net/netip"

	"heddle/internal/agent/captures"
	"heddle/internal/api"
	"heddle/internal/host/hostdev"
)

// Ends returns the ends of a switch's tunnel at present. It is called beside the loop, and looks up routes there.
func (t *Tunnels) Ends(ctx context.Context, name string) (e captures.Ends, err error) {
	var far []netip.Addr
	err = t.host.Loop.Do(ctx, func() (err error) { e, far, err = t.ends(name); return err })
	if err != nil {
		return e, err
	}
	e.Devices, err = hostdev.Ways(e.Own, far)
	return e, err
}

// ends returns the endpoints of this host and those of others, of a switch's tunnel.
func (t *Tunnels) ends(name string) (e captures.Ends, far []netip.Addr, err error) {
	sw := t.plan.Switch(name)
	if sw == nil || sw.Tunnel == nil {
		return e, nil, api.NewError(api.NotFound, fmt.Sprintf("switch %s has no tunnel any more", name))
	}
	by := t.choice(sw)
	for _, own := range sw.Tunnel.Endpoints {
		if address, _, err := t.endpoint(own, by); err == nil { // else the port list says what is wrong with it
			e.Own = append(e.Own, address)
		}
	}
	e.Port = uint16(sw.Tunnel.Port)
	for _, other := range t.host.Reach(sw).Endpoints {
		far = append(far, other.Address)
	}
	return e, far, nil
}
