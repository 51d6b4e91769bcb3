package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Pair is the two ends of a measurement and the server's address.
type Pair struct {
	Client, Server Endpoint
	Addr           netip.Addr
}

// ErrLate says that a sender was ready only after its interval had begun.
var ErrLate = errors.New("the measured interval had begun before the sender was ready")

// ErrNoTransaction says that a sender of transactions has completed none in its interval.
var ErrNoTransaction = errors.New("no transaction was completed in the measured interval")

// Send runs the client's end against a sink (or, for echo and scan, a host) at the address and returns its result.
func Send(ctx context.Context, e Endpoint, load Load, to netip.AddrPort) (Result, error) {
	load, err := load.withDefaults()
	if err != nil {
		return Result{}, err
	}
	res := Result{Kind: load.Kind}
	err = e.run(func() error {
		halt, release := haltWith(ctx)
		defer release()
		if !load.Begin.IsZero() && time.Now().After(load.Begin) {
			return ErrLate
		}
		return res.take(halt, load, to)
	})
	if load.Duration > 0 && ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s to %s: %w", load.Kind, to, err)
	}
	return res, nil
}

// take measures and sets the result's field.
func (r *Result) take(halt *halt, load Load, to netip.AddrPort) (err error) {
	switch load.Kind {
	case KindStream:
		r.Stream, err = sendStream(halt, load, to)
	case KindRR:
		r.Transactions, err = requestResponse(halt, load, to)
	case KindCRR:
		r.Transactions, err = connectRequestResponse(halt, load, to)
	case KindUDP:
		r.Sent, err = sendPackets(halt, load, to)
	case KindEcho:
		r.Echo, err = ping(halt, load, to.Addr())
	case KindScan:
		r.Scan, err = scan(halt, load, to.Addr())
	}
	return err
}

// Measure runs both ends in this process and returns what they found.
func Measure(ctx context.Context, p Pair, load Load) (Result, error) {
	if load.Kind.alone() {
		return Send(ctx, p.Client, load, netip.AddrPortFrom(p.Addr, 0))
	}
	sinks, err := ListenEach(p.Server, load.sink(p.Addr), load.Sessions)
	if err != nil {
		return Result{}, err
	}
	res, err := SendEach(ctx, p.Client, load, reached(sinks.Addrs(), p.Addr))
	seen, sinkErr := sinks.Finish()
	if err := errors.Join(err, sinkErr); err != nil {
		return Result{}, err
	}
	res.Sink = &seen
	return res, nil
}
