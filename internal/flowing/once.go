package flowing

import (
	"hash/maphash"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/meter"
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
	copies  map[uint64]api.FlowRates // of flows for many by what their copies have in common: the most of them
}

// mostCopies bounds what is remembered of flows for many; of those above, every copy counts.
const mostCopies = 1 << 16

func (r *Runner) once(only *matcher, points flow.Points) *once {
	o := &once{only: only, entered: map[plan.PortID]bool{}, points: points, seed: maphash.MakeSeed(), copies: map[uint64]api.FlowRates{}}
	for _, w := range r.wish() {
		for id := range w.ingress {
			o.entered[id] = true
		}
	}
	return o
}

// add counts a flow that the filter matches.
func (o *once) add(f *meter.Flow) {
	rates := api.FlowRates{Packets: f.PacketRate, Bits: f.BitRate}
	switch {
	case f.Key.Direction == flow.Ingress:
	case o.elsewhere(f):
		return
	case f.Key.DstMAC[0]&1 != 0: // a group address
		rates = o.copy(f, rates)
	}
	o.sum.Packets += rates.Packets
	o.sum.Bits += rates.Bits
}

// elsewhere says whether what goes out is counted where it came in.
func (o *once) elsewhere(f *meter.Flow) bool {
	at, known := o.points[f.Total.In]
	if !known || !o.entered[at.ID] {
		return false
	}
	k := f.Key
	k.Point, k.Direction = f.Total.In, flow.Ingress
	return o.only.match(&at, &k)
}

// copy is by how much a copy exceeds those of the same flow that were counted before.
func (o *once) copy(f *meter.Flow, rates api.FlowRates) api.FlowRates {
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
		return rates
	}
	o.copies[id] = api.FlowRates{Packets: max(before.Packets, rates.Packets), Bits: max(before.Bits, rates.Bits)}
	return api.FlowRates{Packets: max(0, rates.Packets-before.Packets), Bits: max(0, rates.Bits-before.Bits)}
}
