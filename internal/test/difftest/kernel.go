package difftest

import (
	"fmt"
	"maps"
	"time"

	"heddle/internal/abi"
	"heddle/internal/dataplane"
	"heddle/internal/flow"
	"heddle/internal/model"
	"heddle/internal/observe"
	"heddle/internal/observe/accounts"
	"heddle/internal/plan"
)

// Kernel is the kernel program's recording build as a subject.
type Kernel struct {
	*dataplane.Recorder
	last time.Duration // of the latest call; the recorder's idle times end there
}

// NewKernel loads the recording build; needs root. Close it after use.
func NewKernel() (*Kernel, error) {
	r, err := dataplane.NewRecorder()
	if err != nil {
		return nil, err
	}
	return &Kernel{Recorder: r}, nil
}

// SetPlan implements Subject.
func (k *Kernel) SetPlan(p *plan.Plan, f plan.Facts, now time.Duration) error {
	k.last = now
	return k.Recorder.SetPlan(p, f, now)
}

// Sweep implements Subject.
func (k *Kernel) Sweep(now time.Duration) error {
	k.last = now
	return k.Recorder.Sweep(now)
}

// Frame implements Subject.
func (k *Kernel) Frame(at plan.PortID, frame []byte, now time.Duration) (Outcome, error) {
	k.last = now
	return outcome(k.Recorder.Frame(at, frame, now))
}

// FromHost implements Subject.
func (k *Kernel) FromHost(uplink plan.PortID, frame []byte, now time.Duration) (Outcome, error) {
	k.last = now
	return outcome(k.Recorder.FromHost(uplink, frame, now))
}

func outcome(r *dataplane.Recorded, err error) (Outcome, error) {
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Delivered: r.Delivered, Reason: r.Reason}
	for _, c := range r.Copies {
		o.Copies = append(o.Copies, model.Copy{To: c.To, HostStack: c.HostStack, Frame: c.Frame})
	}
	for _, x := range r.Refused {
		o.Refused = append(o.Refused, model.Refusal{Port: x.To, Reason: x.Reason})
	}
	return o, nil
}

// MACs implements Subject.
func (k *Kernel) MACs(time.Duration) ([]model.MAC, error) {
	list, err := k.Recorder.MACs()
	if err != nil {
		return nil, err
	}
	var out []model.MAC
	for _, m := range list {
		idle := time.Duration(m.Idle*1000+0.5) * time.Millisecond
		out = append(out, model.MAC{
			Switch: m.Switch, Segment: model.Segment{VNI: m.VNI, VLAN: m.VLAN, AD: m.AD}, MAC: m.MAC, Port: m.Port,
			Seen: k.last - idle,
		})
	}
	return out, nil
}

// Flows implements Subject.
func (k *Kernel) Flows() (map[model.Metered]model.MeteredCounts, error) {
	points := k.Recorder.Flows().Points()
	all := map[model.Metered]model.MeteredCounts{}
	err := k.Recorder.Flows().Drain(func(b flow.Batch) error {
		for i, key := range b.Keys {
			c := b.Counts[i]
			x := model.MeteredCounts{In: points[c.In].ID, Out: points[c.Out].ID, Counts: c}
			x.Counts.In, x.Counts.Out = 0, 0
			m := model.Metered{At: points[key.Point].ID, Key: key}
			m.Key.Point = 0
			if was, twice := all[m]; twice { // at its place, and before that in the table
				was.Counts.Add(c)
				x.Counts = was.Counts
			}
			all[m] = x
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	losses, err := k.Recorder.Flows().Losses()
	if len(losses) > 0 {
		return nil, fmt.Errorf("flows are lost: %+v", losses)
	}
	return all, err
}

// Counters implements Subject.
func (k *Kernel) Counters() (map[plan.PortID]model.Counters, error) {
	all, err := k.Recorder.Counters()
	if err != nil {
		return nil, err
	}
	out := make(map[plan.PortID]model.Counters, len(all))
	for id, c := range all {
		if err := accounts.AtRest(&c); err != nil { // S94, whatever the model says
			return nil, fmt.Errorf("port %s: %w", id, err)
		}
		out[id] = counters(c)
	}
	return out, nil
}

// counters converts the kernel's counters into the model's form.
func counters(c observe.Counters) model.Counters {
	const u, m, b = abi.ClassUnicast, abi.ClassMulticast, abi.ClassBroadcast
	out := model.Counters{
		PacketsInUnicast: c.PacketsIn[u], PacketsInMulticast: c.PacketsIn[m], PacketsInBroadcast: c.PacketsIn[b],
		BytesInUnicast: c.BytesIn[u], BytesInMulticast: c.BytesIn[m], BytesInBroadcast: c.BytesIn[b],
		PacketsOutUnicast: c.PacketsOut[u], PacketsOutMulticast: c.PacketsOut[m], PacketsOutBroadcast: c.PacketsOut[b],
		BytesOutUnicast: c.BytesOut[u], BytesOutMulticast: c.BytesOut[m], BytesOutBroadcast: c.BytesOut[b],
		BytesInFromPnic: c.BytesInFromPnic, BytesOutToPnic: c.BytesOutToPnic,
		Delivered: c.Delivered, PacketsToHost: c.PacketsToHost,
		PacketsFromHost: c.PacketsFromHost, PacketsFromHostKept: c.PacketsFromHostKept,
		PacketsFromHostDropped: c.PacketsFromHostDropped,
		MACsLearned:            c.MACsHeld, MACMoves: c.MACMoves, MACNotLearnedAllowed: c.MACNotLearnedAllowed,
		MACNotLearnedDropped: c.Drops[abi.ReasonMACLimit] + c.Drops[abi.ReasonMACTableFull],
		UnknownNotFlooded:    c.UnknownNotFlooded, UnknownFlooded: c.UnknownFlooded,
	}
	out.DropsIn, out.PacketsInDropped, out.PacketsInException = split(c.Drops, abi.ReasonMalformed)
	out.RefusedOut, out.PacketsOutDropped, out.PacketsOutException = split(c.Refused, abi.ReasonDeviceRefused)
	return out
}

// split leaves the zeros out of counts by reason and sums them up, the one that is an exception apart.
func split(counts map[abi.Reason]uint64, exception abi.Reason) (by map[abi.Reason]uint64, dropped, excepted uint64) {
	by = maps.Clone(counts)
	maps.DeleteFunc(by, func(_ abi.Reason, n uint64) bool { return n == 0 })
	for r, n := range by {
		if r != exception {
			dropped += n
		}
	}
	return by, dropped, counts[exception]
}
