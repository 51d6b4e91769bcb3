package cluster

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// Moves is the agent as the conversation about ports that move from host to host needs it.
type Moves interface {
	// Moves takes in what a controller says of the moves that this host takes part in: all of it, each time. It is
	// called from any goroutine, for one message at a time.
	Moves(context.Context, *controllerv1.HostMoves) error
	// Flapping takes in which MACs of this host others learn again and again, too: all of them, each time.
	Flapping(context.Context, *controllerv1.HostFlapping) error
}

// offering is what the host offers to take over.
type offering struct {
	offers atomic.Pointer[controllerv1.HostOffers]
	again  chan struct{} // holds one token when they may be others
	local  atomic.Pointer[netip.Addr]
}

// Offer has the controllers told which moves this host offers to take over: all of them, each time. Each conversation
// begins with them. It is for one goroutine, and does not block; the message is not changed afterwards.
func (o *offering) Offer(all *controllerv1.HostOffers) {
	if proto.Equal(o.offers.Load(), all) {
		return
	}
	o.offers.Store(all)
	select {
	case o.again <- struct{}{}:
	default:
	}
}

// Local is this host's address in its newest connection to a controller; false before the first one.
func (o *offering) Local() (netip.Addr, bool) {
	if a := o.local.Load(); a != nil {
		return *a, true
	}
	return netip.Addr{}, false
}

// Uses reports whether the newest connection to a controller has one of these addresses of this host.
func (o *offering) Uses(list []netip.Addr) bool {
	a, ok := o.Local()
	return ok && slices.Contains(list, a.Unmap().WithZone(""))
}

// noting makes connections and remembers from which address.
func (o *offering) noting(dial Dial) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if at, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil {
			a := at.Addr()
			o.local.Store(&a)
		}
		return c, nil
	}
}

// offer tells the controller of this conversation what the host offers, whenever it is something else than what the
// controller was told.
func (s *session) offer(told *controllerv1.HostOffers) error {
	for {
		if now := s.offers.Load(); now != told {
			if err := s.send(&controllerv1.FollowSliceRequest{Offers: now}); err != nil {
				return err
			}
			told = now
		}
		select {
		case <-s.again:
		case <-s.ctx.Done():
			return nil
		}
	}
}
