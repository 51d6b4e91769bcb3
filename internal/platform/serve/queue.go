package serve

import (
	"net/netip"
	"sync"

	"heddle/internal/platform/access"
)

// queue gives seats to those who have said hello: one network after the other has its turn, and of a network who
// came first. However many come from one network, those of others wait for one turn of it at most.
type queue struct {
	// most is how many wait; fair is how many of one network may be among them when there are as many.
	most, fair int

	mu sync.Mutex
	// free are the seats that nobody has.
	free int
	// in is how many have come and were not let in yet, seated or not.
	in int
	// waiting is how many of them have no seat.
	waiting int
	// turns are the networks of which somebody waits, in the order in which they have their turn.
	turns []netip.Addr
	by    map[netip.Addr][]*queued
	less  *sync.Cond // somebody waits no more
}

// queued is one who waits for a seat; seated gets true with it, false where there is no room.
type queued struct{ seated chan bool }

func newQueue(most, fair, seats int) *queue {
	q := &queue{most: most, fair: fair, free: seats, by: map[netip.Addr][]*queued{}}
	q.less = sync.NewCond(&q.mu)
	return q
}

// room waits until another one may come.
func (q *queue) room() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.in >= q.most && !q.crowded() {
		q.less.Wait()
	}
}

// crowded reports whether one network has more than its part of those who wait. The caller holds mu.
func (q *queue) crowded() bool {
	_, n := q.largest()
	return n > q.fair
}

func (q *queue) largest() (of netip.Addr, n int) {
	for network, list := range q.by {
		if len(list) > n {
			of, n = network, len(list)
		}
	}
	return of, n
}

// enter waits for a seat; false: there is no room for another one of that network. The caller calls admitted once the
// handshake is computed, or will not be, and rise when it gives the seat back.
func (q *queue) enter(from string) bool {
	q.mu.Lock()
	q.in++
	if q.free > 0 {
		q.free--
		q.mu.Unlock()
		return true
	}
	if q.in > q.most && q.crowded() {
		q.drop()
	}
	network, w := access.NetworkOf(from), &queued{make(chan bool, 1)}
	if len(q.by[network]) == 0 {
		q.turns = append(q.turns, network)
	}
	q.by[network] = append(q.by[network], w)
	q.waiting++
	q.mu.Unlock()
	if <-w.seated {
		return true
	}
	q.admitted()
	return false
}

// drop sends away who came last of the network that has most waiting. The caller holds mu.
func (q *queue) drop() {
	of, n := q.largest()
	last := q.by[of][n-1]
	q.by[of] = q.by[of][:n-1]
	q.waiting--
	last.seated <- false
}

// rise gives a seat to the next one.
func (q *queue) rise() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == 0 {
		q.free++
		return
	}
	network := q.turns[0]
	q.turns = q.turns[1:]
	next := q.by[network][0]
	if q.by[network] = q.by[network][1:]; len(q.by[network]) > 0 {
		q.turns = append(q.turns, network)
	} else {
		delete(q.by, network)
	}
	q.waiting--
	next.seated <- true
}

// admitted says that one of those who came waits no more.
func (q *queue) admitted() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.in--
	q.less.Broadcast()
}

func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.in
}

// taken is how many seats of so many are taken.
func (q *queue) taken(of int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return of - q.free
}
