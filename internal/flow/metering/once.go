package metering

import (
	"hash/maphash"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/flow/meter"
	"heddle/internal/plan"
)

// once sums up flows so that each packet counts once, although it is seen where it came in and at each port where it
// went out. A packet counts where it came in, if that port is metered and the filter selects its flow there; else where
// it went out. A packet to many receivers goes out at several ports, and counts at the one where most of its flow did.
type once struct {
	only    *matcher
	entered map[plan.PortID]bool // ports and uplinks where incoming packets are metered
	points  flow.Points
	sum     api.FlowRates
	seed    maphash.Seed
	copies  map[uint64]amount // for flows with many copies: the largest of the copies, by what they have in common
}

// mostCopies limits how many flows to many receivers are remembered; beyond that, every copy counts.
const mostCopies = 1 << 16

func (r *Runner) once(only *matcher, points flow.Points) *once {
	o := &once{only: only, entered: map[plan.PortID]bool{}, points: points, seed: maphash.MakeSeed(),
		copies: map[uint64]amount{}}
	for _, w := range r.demands() {
		for id := range w.ingress {
			o.entered[id] = true
		}
	}
	return o
}

// amount is the packets and bytes of a flow.
type amount struct {
	api.FlowCounts
	rates api.FlowRates
}

// add counts a flow that the filter selects.
func (o *once) add(f *meter.Flow) {
	part, _ := o.part(f)
	o.sum.Packets += part.rates.Packets
	o.sum.Bits += part.rates.Bits
}

// part is the part of a selected flow that counts here; false if all of it counts elsewhere.
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

// elsewhere reports whether an outgoing flow counts where it came in.
func (o *once) elsewhere(f *meter.Flow) bool {
	at, known := o.points[f.Total.In]
	if !known || !o.entered[at.ID] {
		return false
	}
	k := f.Key
	k.Point, k.Direction = f.Total.In, flow.Ingress
	return o.only.match(&at, &k)
}

// copy is by how much a copy exceeds the copies of the same flow that were counted before; false if it does not.
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
