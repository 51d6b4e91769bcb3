package serve

import (
	"net/netip"
	"sync"

	"heddle/internal/platform/access"
	"heddle/internal/platform/rounds"
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
	// waiting are those of them who have no seat, by their networks.
	waiting rounds.Of[netip.Addr, *queued]
	less    *sync.Cond // somebody waits no more
}

// queued is one who waits for a seat; seated gets true with it, false where there is no room.
type queued struct{ seated chan bool }

func newQueue(most, fair, seats int) *queue {
	q := &queue{most: most, fair: fair, free: seats}
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
	_, n := q.waiting.Largest()
	return n > q.fair
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
	w := &queued{make(chan bool, 1)}
	q.waiting.Add(access.NetworkOf(from), w)
	q.mu.Unlock()
	if <-w.seated {
		return true
	}
	q.admitted()
	return false
}

// drop sends away who came last of the network that has most waiting. The caller holds mu.
func (q *queue) drop() {
	of, _ := q.waiting.Largest()
	if last, ok := q.waiting.Remove(of, func(*queued) bool { return true }); ok {
		last.seated <- false
	}
}

// rise gives a seat to the next one.
func (q *queue) rise() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if next, ok := q.waiting.Next(); ok {
		next.seated <- true
		return
	}
	q.free++
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
