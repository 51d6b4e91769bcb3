package sim

import (
	"fmt"
	"net/netip"
	"time"
)

// pingData is how many bytes of payload a request has, as for the ping program.
const pingData = 56

// patience is how long to wait for replies after the last request.
const patience = time.Second

// ping sends requests at an interval and counts the replies to each of them until patience ends.
func (w *world) ping(from *stack, source, to netip.Addr, requests int, interval time.Duration) ([]int, error) {
	w.pings++
	id := w.pings
	replies := make([]int, requests)
	from.heard = func(e echo) {
		if e.id == id && int(e.seq) < requests {
			replies[e.seq]++
		}
	}
	defer func() { from.heard = nil }()
	for seq := range requests {
		request := echo{id: id, seq: uint16(seq), data: make([]byte, pingData)}
		p := ipv4{src: source, dst: to, ttl: defaultTTL, proto: protoICMP, payload: request.bytes()}
		if !from.output(p) {
			return nil, fmt.Errorf("there is no route from %s to %s", source, to)
		}
		wait := interval
		if seq == requests-1 {
			wait = patience
		}
		if err := w.loop.run(wait); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// repliesPerPing is the mean over all but the last request, as package traffic defines it; with one request, it is that
// one's.
func repliesPerPing(replies []int) float64 {
	counted := replies
	if len(counted) > 1 {
		counted = counted[:len(counted)-1]
	}
	sum := 0
	for _, n := range counted {
		sum += n
	}
	return float64(sum) / float64(len(counted))
}

func answered(replies []int) int {
	n := 0
	for _, r := range replies {
		if r > 0 {
			n++
		}
	}
	return n
}
