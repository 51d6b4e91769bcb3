package rpc

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect/v2"
)

// A host that is silently gone, as when its packets are dropped, counts as connected for half a minute. Who calls it
// meanwhile is told sooner, and by the controller that it is connected to.

// silentTime is after what time a host that has said nothing of a call is asked whether it is there.
const silentTime = time.Second

// expect has a call fail where the host says nothing of it and does not answer a ping either: an agent answers that at
// once, however busy it is.
func (q *call) expect(f *fleet) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.silent = time.AfterFunc(silentTime, func() {
		if !f.answers(context.Background(), q.conn) {
			q.fail(connect.NewError(connect.CodeUnavailable, fmt.Sprintf("nothing was heard of it for %s: it has "+
				"hung, or the network between it and its controller is cut", silentTime+pongTime)))
		}
	})
}

// heard says that the host has said something of it, or that nobody waits for that any more.
func (q *call) heard() {
	if q.silent != nil {
		q.silent.Stop()
	}
}
