package export

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// Lookup resolves a host name to at least one address.
type Lookup func(ctx context.Context, name string) ([]netip.Addr, error)

func resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
}

// Times of name resolution.
const (
	lookupTimeout = 5 * time.Second
	firstRetry    = time.Second
	lastRetry     = 30 * time.Second
	lookAgain     = time.Minute // names get other addresses
)

// resolution is the latest result for a name.
type resolution struct {
	addresses []netip.Addr
	err       error
}

// resolver looks a name up again and again, concurrently with those who use the result.
type resolver struct {
	last atomic.Pointer[resolution]
}

// newResolver begins with an address, or starts looking a name up until ctx is done.
func newResolver(ctx context.Context, address string, lookup Lookup) *resolver {
	r := &resolver{}
	if a, err := netip.ParseAddr(address); err == nil {
		r.last.Store(&resolution{addresses: []netip.Addr{a.Unmap()}})
		return r
	}
	go r.follow(ctx, address, lookup)
	return r
}

func (r *resolver) follow(ctx context.Context, name string, lookup Lookup) {
	retry := firstRetry
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, lookupTimeout)
		addresses, err := lookup(limited, name)
		cancel()
		wait := lookAgain
		switch {
		case err == nil && len(addresses) > 0:
			for i := range addresses {
				addresses[i] = addresses[i].Unmap()
			}
			r.last.Store(&resolution{addresses: addresses})
			retry = firstRetry
		default:
			if err == nil {
				err = fmt.Errorf("%s has no address", name)
			}
			r.fail(err)
			wait, retry = retry, min(2*retry, lastRetry)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// fail keeps the known addresses after a failed look-up.
func (r *resolver) fail(err error) {
	next := &resolution{err: err}
	if old := r.last.Load(); old != nil {
		next.addresses = old.addresses
	}
	r.last.Store(next)
}

// address is the address to use: the present one while the name still has it; else the first one, preferably IPv4 if
// there is a source address to send from. Invalid when none is known.
func (r *resolver) address(present netip.Addr, four bool) (netip.Addr, error) {
	last := r.last.Load()
	if last == nil {
		return netip.Addr{}, nil
	}
	var first netip.Addr
	for _, a := range last.addresses {
		if a == present {
			return a, last.err
		}
		if !first.IsValid() || four && a.Is4() && !first.Is4() {
			first = a
		}
	}
	return first, last.err
}
