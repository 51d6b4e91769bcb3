package benchmark

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"heddle/internal/fabric"
)

// Bounds of a benchmark.
const (
	// Share is which part of an uplink's speed a benchmark takes at most in each direction: one in so many.
	Share = 10
	// AssumedSpeed is that of an uplink that reports none, in bits per second.
	AssumedSpeed = 1_000_000_000
	// DefaultRate, LeastRate and MostRate are for each uplink and direction, in bits per second.
	DefaultRate = 10_000_000
	LeastRate   = 100_000
	MostRate    = 1_000_000_000
	// DefaultTime, LeastTime and MostTime are how long all hosts send.
	DefaultTime = 5 * time.Second
	LeastTime   = time.Second
	MostTime    = time.Minute
	// AwakeTime is how long an uplink waits for a sign of life of another one before it gives up.
	AwakeTime = 10 * time.Second
	// MostHosts is how many hosts take part: with more, each pair would have too little to tell anything.
	MostHosts = 100
)

// Flow is what one uplink sends to an uplink of another host.
type Flow struct {
	// Number of the flow in its benchmark, from 1.
	Number   uint32
	From, To fabric.Member
	// VLAN in which it is sent, 0 for untagged frames.
	VLAN uint16
	// MTU is the length of each packet, in bytes of layer 3.
	MTU int
	// Rate is the most that is sent, in bits per second of layer 3.
	Rate uint64
}

// Limit returns how much an uplink may send, and receive, in bits per second: what was asked for, and no more than its
// share of the speed.
func Limit(rate, speed uint64) uint64 { return min(rate, cmp.Or(speed, AssumedSpeed)/Share) }

// Plan has each host send to each other one at once: by each of its uplinks to the uplink of the same name there, or
// where there is none to one of the others, in one of the VLANs that both use. The pairs of a host take its VLANs in
// turn. rate is for each uplink and direction, in bits per second; the flows of an uplink share it. apart are the pairs
// of hosts that have no switch and no VLAN in common.
func Plan(members []fabric.Member, rate uint64) (flows []Flow, apart [][2]string) {
	members = slices.SortedFunc(slices.Values(members), func(a, b fabric.Member) int { return a.End.Compare(b.End) })
	by, names := map[string][]fabric.Member{}, []string{}
	for _, m := range members {
		if by[m.Host] == nil {
			names = append(names, m.Host)
		}
		by[m.Host] = append(by[m.Host], m)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(by[a][0].Name, by[b][0].Name) })
	for i, a := range names {
		for k, b := range names {
			if a == b {
				continue
			}
			list := between(by[a], by[b], i+k)
			if len(list) == 0 && i < k {
				apart = append(apart, [2]string{by[a][0].Name, by[b][0].Name})
			}
			flows = append(flows, list...)
		}
	}
	share(flows, rate)
	return flows, apart
}

// between returns the flows from one host to another. turn chooses the VLANs.
func between(from, to []fabric.Member, turn int) (list []Flow) {
	for n, a := range from {
		b, vlans := partner(&a, to)
		if b == nil {
			continue
		}
		list = append(list, Flow{From: a, To: *b, VLAN: vlans[(turn+n)%len(vlans)],
			MTU: min(max(min(a.MTU, b.MTU), fabric.Shortest), fabric.Longest)})
	}
	return list
}

// partner returns the uplink to which another one sends, and the VLANs that both have.
func partner(a *fabric.Member, to []fabric.Member) (best *fabric.Member, vlans []uint16) {
	for i := range to {
		b := &to[i]
		if b.Switch != a.Switch || best != nil && b.Uplink != a.Uplink {
			continue
		}
		var both []uint16
		for _, v := range a.VLANs {
			if slices.Contains(b.VLANs, v) {
				both = append(both, v)
			}
		}
		if len(both) > 0 {
			best, vlans = b, both
		}
	}
	return best, vlans
}

// share numbers the flows, and divides what each uplink may send and receive among them.
func share(flows []Flow, rate uint64) {
	out, in := map[fabric.End]uint64{}, map[fabric.End]uint64{}
	for i := range flows {
		out[flows[i].From.End]++
		in[flows[i].To.End]++
	}
	for i := range flows {
		f := &flows[i]
		f.Number = uint32(i + 1)
		f.Rate = min(Limit(rate, f.From.Speed)/out[f.From.End], Limit(rate, f.To.Speed)/in[f.To.End])
	}
}

// Check says what is wrong with what was asked for; nil for nothing.
func Check(rate uint64, lasts time.Duration) error {
	switch {
	case rate < LeastRate || rate > MostRate:
		return fmt.Errorf("the rate for each uplink is %s to %s, not %d bit/s", "100 kbit/s", "1 Gbit/s", rate)
	case lasts < LeastTime || lasts > MostTime:
		return fmt.Errorf("the duration is %v to %v, not %v", LeastTime, MostTime, lasts)
	}
	return nil
}
