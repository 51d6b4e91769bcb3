package flowexport

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/lab/scenario"
	"heddle/internal/lab/traffic"
)

// adapterModel is what the VMs' adapters are. The empty one is a veth, as without --queues.
type adapterModel string

const (
	// tap: the host's end is a tap, and a thread of the lab for each pair of queues carries the frames to the VM, which
	// is a namespace.
	tap adapterModel = "tap"
	// virtio: the VM is a Linux under QEMU's emulation with a virtio-net adapter, without KVM and vhost.
	virtio adapterModel = "virtio-net"
)

// adapter is what the VMs of a cell have.
type adapter struct {
	model  adapterModel
	queues int // pairs of them; 0 for a veth
}

// emulated reports whether the VMs are emulated machines. What such a machine does is no measure of a real one: their
// rows are shown, and no budget judges them.
func (a adapter) emulated() bool { return a.model == virtio }

// String is what rows call it.
func (a adapter) String() string { return fmt.Sprintf("%s/%d", a.model, a.queues) }

// AdapterNames are the names of the adapters that can be chosen for a number of queues.
func AdapterNames() []string { return []string{string(tap), string(virtio)} }

const (
	// spreadOver is the least number of flows of packets where VMs have queues: adapters spread flows, not packets.
	spreadOver = 64
	// flowsPerQueue is how many flows there are at least for each queue, up to what a sender can have.
	flowsPerQueue = 8
	mostFlows     = 1024
	// maxVMs is how many VMs a host can have, by their addresses.
	maxVMs = 99
	// pairsOfGuests is how many pairs of emulated machines exchange traffic.
	pairsOfGuests = 1
)

// flows is how many flows the packets of a pair are, in all cells of a run alike; 0: one.
func (o Options) flows() int {
	if len(o.Queues) == 0 {
		return 0
	}
	return min(max(spreadOver, flowsPerQueue*slices.Max(o.Queues)), mostFlows)
}

// checkQueues returns what is wrong with the numbers of queues and the adapters.
func (o Options) checkQueues() error {
	if len(o.Queues) == 0 && len(o.Adapters) > 0 {
		return errors.New("adapters are chosen for a number of queues: say --queues 1,4")
	}
	for i, n := range o.Queues {
		switch {
		case n < 1 || n > scenario.MaxTapQueues:
			return fmt.Errorf("%d queues: want 1–%d, as many as a tap has", n, scenario.MaxTapQueues)
		case slices.Contains(o.Queues[:i], n):
			return fmt.Errorf("%d queues are asked for twice", n)
		}
	}
	for _, name := range o.Adapters {
		if !slices.Contains(AdapterNames(), name) {
			return fmt.Errorf("no adapter %q: want some of %s", name, strings.Join(AdapterNames(), ", "))
		}
	}
	return nil
}

// adapters are those that are measured: a veth, or the chosen ones with each number of queues.
func (o Options) adapters() (all []adapter) {
	if len(o.Queues) == 0 {
		return []adapter{{}}
	}
	for _, model := range []adapterModel{tap, virtio} {
		if len(o.Adapters) > 0 && !slices.Contains(o.Adapters, string(model)) || model == virtio && o.noGuests != nil {
			continue
		}
		for _, n := range o.Queues {
			if model != virtio || n <= scenario.MaxMachineQueues {
				all = append(all, adapter{model, n})
			}
		}
	}
	return all
}

// fits reports whether a cell is measured with its adapter: of emulated machines there is one pair, and how far their
// streams are is not read.
func (c cell) fits() bool {
	return !c.emulated() || c.pairs <= pairsOfGuests && c.kind != traffic.KindStream
}

// guestsWanted reports whether emulated machines are to be measured, if that is possible.
func (o Options) guestsWanted() bool {
	return len(o.Queues) > 0 && (len(o.Adapters) == 0 || slices.Contains(o.Adapters, string(virtio)))
}

// leftOut says which part of what was asked for is not measured, and why.
func (o Options) leftOut() (notes []string) {
	if !o.guestsWanted() {
		return nil
	}
	if o.noGuests != nil {
		return []string{fmt.Sprintf("Left out: virtio-net in guests under QEMU, with any number of queues: %v.",
			o.noGuests)}
	}
	for _, n := range o.Queues {
		if n > scenario.MaxMachineQueues {
			notes = append(notes, fmt.Sprintf("Left out: virtio-net of %d queues. A guest has a CPU for each queue, "+
				"and at most %d.", n, scenario.MaxMachineQueues))
		}
	}
	if slices.ContainsFunc(o.Pairs, func(n int) bool { return n > pairsOfGuests }) {
		notes = append(notes, "Left out: more than one pair of guests under QEMU.")
	}
	if slices.Contains(o.Loads, "stream") {
		notes = append(notes, "Left out: stream between guests under QEMU.")
	}
	return notes
}

// fleet is which VMs there are on each host, by number from 0, which is that of the background: the adapter of each,
// and the first of those with an adapter.
type fleet struct {
	adapters []adapter
	first    map[adapter]int
}

// fleetOf has as many VMs with each adapter as its largest cell needs.
func fleetOf(cells []cell) (f fleet, err error) {
	f = fleet{adapters: []adapter{{}}, first: map[adapter]int{}}
	most := map[adapter]int{}
	for _, c := range cells {
		most[c.adapter] = max(most[c.adapter], c.pairs)
	}
	for _, c := range cells {
		if _, known := f.first[c.adapter]; known {
			continue
		}
		f.first[c.adapter] = len(f.adapters)
		f.adapters = append(f.adapters, slices.Repeat([]adapter{c.adapter}, most[c.adapter])...)
	}
	if n := len(f.adapters); n > maxVMs {
		return f, fmt.Errorf("%d VMs on each host, for all numbers of queues and pairs: want at most %d", n, maxVMs)
	}
	return f, nil
}
