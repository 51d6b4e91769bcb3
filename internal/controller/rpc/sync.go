package rpc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/peers"
)

// mostSync bounds how long hosts are waited for that were sent everything again.
const mostSync = 5 * time.Minute

// SyncHosts sends hosts again what they are to have, wherever they are connected.
func (p people) SyncHosts(ctx context.Context, q *controllerv1.SyncHostsRequest) (*controllerv1.SyncHostsResponse,
	error) {
	if !(syncer{p.fleet}).has(q.GetHost()) {
		return nil, connect.NewError(connect.CodeNotFound,
			fmt.Sprintf("the cluster has no host %q: see heddle host list", q.GetHost()))
	}
	wait := max(0, min(q.GetWait().AsDuration(), mostSync))
	asked := make(chan []peers.Answer[*controllerv1.SyncHostsHereResponse], 1)
	go func() {
		asked <- peers.AskOthers(ctx, p.Roster, peers.AskTime+wait,
			func(ctx context.Context, k *peers.Link) (*controllerv1.SyncHostsHereResponse, error) {
				return k.SyncHostsHere(ctx, &controllerv1.SyncHostsHereRequest{Request: q})
			})
	}()
	here := syncer{p.fleet}.sync(ctx, q, wait, true)
	out := &controllerv1.SyncHostsResponse{}
	for _, a := range <-asked {
		if a.Err != nil {
			out.Unreachable = append(out.Unreachable, peers.NameOf(a.Of))
		}
		for _, h := range a.Got.GetHosts() { // instead of what is not connected here
			here = slices.DeleteFunc(here, func(o *controllerv1.SyncedHost) bool {
				return o.GetHost() == h.GetHost() && o.GetState() == controllerv1.HostState_HOST_STATE_DISCONNECTED
			})
			here = append(here, h)
		}
	}
	slices.SortFunc(here, func(a, b *controllerv1.SyncedHost) int { return strings.Compare(a.GetHost(), b.GetHost()) })
	out.Hosts = here
	p.reader().Date(ctx, here)
	return out, ctx.Err()
}

// SyncHostsHere does it for the hosts that are connected here.
func (o others) SyncHostsHere(ctx context.Context, q *controllerv1.SyncHostsHereRequest) (
	*controllerv1.SyncHostsHereResponse, error) {
	if _, err := controllerOf(ctx); err != nil {
		return nil, err
	}
	wait := max(0, min(q.GetRequest().GetWait().AsDuration(), mostSync))
	list := syncer{o.fleet}.sync(ctx, q.GetRequest(), wait, false)
	return &controllerv1.SyncHostsHereResponse{Hosts: list}, ctx.Err()
}

// syncer is the part of a fleet that sends hosts everything again.
type syncer struct{ *fleet }

// has reports whether there is a host of that name; "" is any.
func (f syncer) has(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return name == "" || f.names[name] != nil
}

// resent is a host that has been sent everything again.
type resent struct {
	*host
	conn         *conn
	acknowledged int // when it was
	out          *controllerv1.SyncedHost
}

// sync sends the hosts that are asked for everything again, and waits for what becomes of it. all says that those that
// are not connected here are listed, too.
func (f syncer) sync(ctx context.Context, q *controllerv1.SyncHostsRequest, wait time.Duration,
	all bool) []*controllerv1.SyncedHost {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	list := f.resend(q, all)
	if q.GetLook() {
		out := make([]*controllerv1.SyncedHost, len(list))
		for i, r := range list {
			out[i] = r.out
		}
		return out
	}
	// When the time is over, those that have not answered say so.
	_ = until(ctx, f.fleet, func() bool { return !slices.ContainsFunc(list, (*resent).unanswered) })
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]*controllerv1.SyncedHost, len(list))
	for i, r := range list {
		r.out.State, r.out.Problems = f.state(r.host)
		if r.unanswered() {
			r.out.State, r.out.Problems = controllerv1.HostState_HOST_STATE_PENDING, []string{"it has not answered yet"}
		}
		out[i] = r.out
	}
	return out
}

// unanswered reports whether a host is connected still and has not said what became of it. The caller holds the lock.
func (r *resent) unanswered() bool {
	return r.conn != nil && r.host.conn == r.conn && r.conn.acknowledged == r.acknowledged
}

// resend has everything sent again, unless somebody only looks.
func (f syncer) resend(q *controllerv1.SyncHostsRequest, all bool) (list []*resent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.sorted() {
		if name := q.GetHost(); name != "" && h.doc.Name != name || h.conn == nil && !all {
			continue
		}
		r := &resent{host: h, conn: h.conn, out: &controllerv1.SyncedHost{Host: h.doc.Name}}
		f.compare(h, r.out)
		r.out.Before, r.out.Problems = f.state(h)
		r.out.State = r.out.GetBefore()
		if h.conn != nil && !q.GetLook() {
			r.acknowledged = h.conn.acknowledged
			h.failed, h.conn.resend = version{}, true
			h.conn.poke()
		}
		list = append(list, r)
	}
	return list
}
