package bench

import (
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/dataplane"
	"heddle/internal/flow"
	"heddle/internal/lab/report"
	"heddle/internal/spec"
)

const (
	cellUnmetered   = "known unicast UDP, not metered"
	cellMeteredOut  = "known unicast UDP, metered on its way out"
	cellMeteredBoth = "known unicast UDP, metered on both ways"
	cellFlowsBase   = "harness alone, 1,000 flows"
	cellFlowsFew    = "metered on its way out, 1,000 flows"
	cellFlowsSome   = "metered on its way out, 1,000 of 1,000,000 flows"
	cellFlowsAll    = "metered on its way out, all of 1,000,000 flows"
	cellFlowsBase2  = "harness alone, 1,000,000 flows"
	cellFlowsNewOff = "harness alone, a new flow with every frame"
	cellFlowsNew    = "metered on its way out, a new flow with every frame"

	fewFlows  = 1000
	manyFlows = 1_000_000
)

// holdCPU binds the calling thread to the first CPU that it may use, until free is called, because flows are counted by
// CPU.
func holdCPU() (free func() error, err error) {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("read which CPUs may be used: %w", err)
	}
	one.Set(cpuOfThread())
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return nil, fmt.Errorf("stay on one CPU: %w", err)
	}
	return func() error { return unix.SchedSetaffinity(0, &all) }, nil
}

// cpuOfThread is the first CPU the calling thread may use.
func cpuOfThread() int {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err == nil {
		for cpu := range 1024 {
			if all.IsSet(cpu) {
				return cpu
			}
		}
	}
	return 0
}

// meteringFrame is a minimal UDP packet.
func meteringFrame(dst, src [6]byte) []byte {
	f := make([]byte, 60)
	copy(f, dst[:])
	copy(f[6:], src[:])
	f[12], f[13], f[14], f[22], f[23] = 8, 0, 0x45, 64, 17
	binary.BigEndian.PutUint16(f[16:], 46)
	copy(f[26:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	f[35], f[37], f[39] = 7, 9, 26
	return f
}

// metering is a switch of three ports that are metered.
func (r *frameRig) metering(frames int, on bool, where spec.Observe) (*dataplane.FrameBench, error) {
	b, err := r.bench(frames)
	if err != nil {
		return nil, err
	}
	d, err := desired(3, access100(), false, nowhere)
	if err != nil {
		return nil, err
	}
	sw := d.Plan.Switches[0]
	sw.IPFIX.MaxFlows = 2 * manyFlows
	for _, p := range sw.Ports {
		p.Policy.Monitoring.IPFIX.V, p.Policy.Monitoring.Observe.V = on, where
	}
	return b, b.Apply(d)
}

// addMetering measures what metering adds to a frame.
func (r *frameRig) addMetering() error {
	frame := meteringFrame(portMAC(1), portMAC(0))
	for _, c := range []struct {
		name  string
		on    bool
		where spec.Observe
	}{{cellUnmetered, false, spec.ObserveBoth}, {cellMeteredOut, true, spec.ObserveEgress},
		{cellMeteredBoth, true, spec.ObserveBoth}} {
		b, err := r.metering(1, c.on, c.where)
		if err != nil {
			return err
		}
		r.cells = append(r.cells, &frameCell{name: c.name, measure: func() (time.Duration, error) {
			return b.One(portID(0), frame, repeatUnicast)
		}})
	}
	if err := r.addFlows(fewFlows, fewFlows, cellFlowsBase, cellFlowsFew); err != nil {
		return err
	}
	if err := r.addFlows(manyFlows, fewFlows, "", cellFlowsSome); err != nil {
		return err
	}
	if err := r.addFlows(manyFlows, manyFlows, cellFlowsBase2, cellFlowsAll); err != nil {
		return err
	}
	return r.addNewFlows()
}

// addFlows measures frames of some of the flows in the table, in an order that no prefetcher predicts; base, unless "",
// is the harness alone.
func (r *frameRig) addFlows(all, some int, base, name string) error {
	b, err := r.metering(max(some, 1), true, spec.ObserveEgress)
	if err != nil {
		return err
	}
	if err := b.SizeFlows(cpuOfThread(), all*5/4); err != nil {
		return err
	}
	frames := make([]dataplane.BenchFrame, some)
	for i := range frames {
		frames[i] = dataplane.BenchFrame{From: portID(0), Dst: portMAC(1), Src: portMAC(0),
			Flow: uint32(i * (all / some) * 7919 % all)}
	}
	if err := b.SetCycle(frames); err != nil {
		return err
	}
	frame := meteringFrame(portMAC(1), portMAC(0))
	if err := b.SetFlows(dataplane.NewFlows); err != nil {
		return err
	}
	for left := all; left > 0; left -= repeatUnicast { // the flows begin here
		if _, err := b.Cycle(frame, min(left, repeatUnicast), false); err != nil {
			return err
		}
	}
	if err := b.SetFlows(dataplane.GivenFlows); err != nil {
		return err
	}
	if base != "" {
		r.cells = append(r.cells, &frameCell{name: base, measure: func() (time.Duration, error) {
			return b.Cycle(frame, repeatUnicast, true)
		}})
	}
	r.cells = append(r.cells, &frameCell{name: name, measure: func() (time.Duration, error) {
		return b.Cycle(frame, repeatUnicast, false)
	}})
	return nil
}

// addNewFlows measures the worst that a guest can cause: a flow that begins with every frame.
func (r *frameRig) addNewFlows() error {
	b, err := r.metering(1, true, spec.ObserveEgress)
	if err != nil {
		return err
	}
	if err := b.SizeFlows(cpuOfThread(), repeatUnicast*3/2); err != nil {
		return err
	}
	if err := b.SetCycle([]dataplane.BenchFrame{{From: portID(0), Dst: portMAC(1), Src: portMAC(0)}}); err != nil {
		return err
	}
	if err := b.SetFlows(dataplane.NewFlows); err != nil {
		return err
	}
	frame := meteringFrame(portMAC(1), portMAC(0))
	forget := func(flow.Batch) error { return nil }
	r.cells = append(r.cells,
		&frameCell{name: cellFlowsNewOff, measure: func() (time.Duration, error) {
			return b.Cycle(frame, repeatUnicast, true)
		}},
		&frameCell{name: cellFlowsNew, measure: func() (time.Duration, error) {
			if err := b.Flows().Drain(forget); err != nil {
				return 0, err
			}
			return b.Cycle(frame, repeatUnicast, false)
		}})
	return nil
}

// reportMetering adds what metering costs.
func (r *frameRig) reportMetering(rep *report.Report, empty float64) {
	out := report.Summarise(difference(r.samples(cellMeteredOut), r.samples(cellUnmetered)))
	both := report.Summarise(difference(r.samples(cellMeteredBoth), r.samples(cellUnmetered)))
	few, some := difference(r.samples(cellFlowsFew), r.samples(cellFlowsBase)), difference(r.samples(cellFlowsSome),
		r.samples(cellFlowsBase))
	all := difference(r.samples(cellFlowsAll), r.samples(cellFlowsBase2))
	fresh := report.Summarise(difference(r.samples(cellFlowsNew), r.samples(cellFlowsNewOff)))
	ratio := report.Summarise(report.Ratios(add(some, empty), add(few, empty)))
	rep.Budgets = append(rep.Budgets,
		report.Hold("metering a frame at one point", out.Median, report.Seconds, report.AtMost, 50e-9),
		report.Hold("metering a frame at two points, each", both.Median/2, report.Seconds, report.AtMost, 50e-9),
		report.Hold("1,000 of 1,000,000 flows / 1,000 flows", ratio.Median, report.Ratio, report.AtMost, 1.3),
	)
	rep.Notes = append(rep.Notes, fmt.Sprintf(
		"Metering adds %s to a frame where it goes out (quartiles %s–%s), %s on both ways. With a million flows in "+
			"the table a frame of a thousand of them takes %s times what it takes when there are no others "+
			"(quartiles %.2f–%.2f); of all of them, %s times. A frame that begins a flow takes %s.",
		report.Seconds.Format(out.Median), report.Seconds.Format(out.Q1), report.Seconds.Format(out.Q3),
		report.Seconds.Format(both.Median),
		report.Ratio.Format(ratio.Median), ratio.Q1, ratio.Q3,
		report.Ratio.Format(report.Summarise(report.Ratios(add(all, empty), add(few, empty))).Median),
		report.Seconds.Format(fresh.Median)))
}
