package metering

import (
	"hash/maphash"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/flow/meter"
	"heddle/internal/plan"
)

// once sums up what flows had, with each packet counted once though it is seen where it came in and at each port where
// it went out. A packet counts where it came in, if that port is metered and its flow there is asked for; else where it
// went out. What is for many goes out at several ports and counts at the one where most of its flow did.
type once struct {
	only    *matcher
	entered map[plan.PortID]bool // ports and uplinks that are metered where packets come in
	points  flow.Points
	sum     api.FlowRates
	seed    maphash.Seed
	copies  map[uint64]amount // of flows with many copies, by what the copies have in common: the largest of them
}

// mostCopies bounds what is remembered of flows for many; of those above, every copy counts.
const mostCopies = 1 << 16

func (r *Runner) once(only *matcher, points flow.Points) *once {
	o := &once{only: only, entered: map[plan.PortID]bool{}, points: points, seed: maphash.MakeSeed(),
		copies: map[uint64]amount{}}
	for _, w := range r.wish() {
		for id := range w.ingress {
			o.entered[id] = true
		}
	}
	return o
}

// amount is what a flow had.
type amount struct {
	api.FlowCounts
	rates api.FlowRates
}

// add counts a flow that the filter matches.
func (o *once) add(f *meter.Flow) {
	part, _ := o.part(f)
	o.sum.Packets += part.rates.Packets
	o.sum.Bits += part.rates.Bits
}

// part is the part of a matching flow that is counted here; false when all of it is counted elsewhere.
func (o *once) part(f *meter.Flow) (amount, bool) {
	all := amount{counts(&f.Total), api.FlowRates{Packets: f.PacketRate, Bits: f.BitRate}}
	switch {
	case f.Key.Direction == flow.Ingress:
	case o.elsewhere(f):
		return amount{}, false
	case f.Key.DstMAC[0]&1 != 0: // a group address
		return o.copy(f, all)
	}
	return all, true
}

// elsewhere reports whether what goes out is counted where it came in.
func (o *once) elsewhere(f *meter.Flow) bool {
	at, known := o.points[f.Total.In]
	if !known || !o.entered[at.ID] {
		return false
	}
	k := f.Key
	k.Point, k.Direction = f.Total.In, flow.Ingress
	return o.only.match(&at, &k)
}

// copy is by how much a copy exceeds those of the same flow that were counted before; false when by nothing.
func (o *once) copy(f *meter.Flow, all amount) (amount, bool) {
	k := f.Key
	k.Point = 0
	var h maphash.Hash
	h.SetSeed(o.seed)
	maphash.WriteComparable(&h, struct {
		sw string
		k  flow.Key
	}{f.Switch, k})
	id := h.Sum64()
	before, there := o.copies[id]
	if !there && len(o.copies) >= mostCopies {
		return all, true
	}
	most := before.most(all)
	o.copies[id] = most
	return most.less(before), !there || most != before
}

// most has the larger of each number.
func (a amount) most(b amount) amount {
	return amount{
		api.FlowCounts{Packets: max(a.Packets, b.Packets), Bytes: max(a.Bytes, b.Bytes),
			FrameBytes: max(a.FrameBytes, b.FrameBytes)},
		api.FlowRates{Packets: max(a.rates.Packets, b.rates.Packets), Bits: max(a.rates.Bits, b.rates.Bits)},
	}
}

// less is by how much the numbers are above those of b.
func (a amount) less(b amount) amount {
	return amount{
		api.FlowCounts{Packets: a.Packets - b.Packets, Bytes: a.Bytes - b.Bytes,
			FrameBytes: a.FrameBytes - b.FrameBytes},
		api.FlowRates{Packets: a.rates.Packets - b.rates.Packets, Bits: a.rates.Bits - b.rates.Bits},
	}
}
