package flowexport

import (
	"context"
	"fmt"
	"slices"

	"heddle/internal/lab/multiqueue"
	"heddle/internal/lab/report"
)

// spread is how the packets of a cell were distributed over the queues of its VMs' adapters: those that the receivers'
// VMs received, and those that the senders' VMs sent, by queue, of all pairs.
type spread struct{ received, sent []uint64 }

// spreads are those of a run, by cell.
type spreads map[string]spread

// add adds what queues have carried between two looks.
func (s *spread) add(before, after [len(sides)][]multiqueue.Counts) {
	for i := range after[rx] {
		s.received = plus(s.received, i, after[rx][i].ToVM-before[rx][i].ToVM)
	}
	for i := range after[tx] {
		s.sent = plus(s.sent, i, after[tx][i].FromVM-before[tx][i].FromVM)
	}
}

func plus(sums []uint64, i int, n uint64) []uint64 {
	if i == len(sums) {
		sums = append(sums, 0)
	}
	sums[i] += n
	return sums
}

// used is how many queues have carried something, and the least and the largest share of all packets, in percent.
func used(packets []uint64) (n int, least, most float64) {
	var sum uint64
	for _, p := range packets {
		sum += p
	}
	if sum == 0 {
		return 0, 0, 0
	}
	least = 100
	for _, p := range packets {
		if p > 0 {
			n++
		}
		share := 100 * float64(p) / float64(sum)
		least, most = min(least, share), max(most, share)
	}
	return n, least, most
}

// queues are what the queues of a pair's VMs have carried so far.
func (r *rig) queues(ctx context.Context, n int) (all [len(sides)][]multiqueue.Counts, err error) {
	for _, s := range sides {
		if g := r.guests[s][n]; g != nil {
			all[s], err = g.queues(ctx)
		} else {
			all[s], err = r.lab.Queues(s.vm(n))
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// watchQueues looks at the queues of a cell's VMs; the returned function adds what they have carried since.
func (r *rig) watchQueues(ctx context.Context, c cell) (add func(*spread) error, err error) {
	before := map[int][len(sides)][]multiqueue.Counts{}
	if c.adapter.queues > 0 {
		for n := range r.pairsOf(c) {
			if before[n], err = r.queues(ctx, n); err != nil {
				return nil, err
			}
		}
	}
	return func(s *spread) error {
		for n, was := range before {
			now, err := r.queues(ctx, n)
			if err != nil {
				return err
			}
			s.add(was, now)
		}
		return nil
	}, nil
}

// adapterFields name the adapter of a cell.
func (c cell) adapterFields() []report.Field {
	if c.adapter.queues == 0 {
		return nil
	}
	return []report.Field{
		{Name: "adapter", Value: string(c.model), Hidden: true},
		{Name: "queues", Value: c.adapter.queues, Hidden: true},
	}
}

// fields say which queues a cell's packets took.
func (all spreads) fields(c cell) (fields []report.Field) {
	if c.adapter.queues == 0 {
		return nil
	}
	s := all[c.id()]
	for _, of := range []struct {
		name, title string
		packets     []uint64
	}{{"queues_received", "receive queues used", s.received}, {"queues_sent", "send queues used", s.sent}} {
		n, least, most := used(of.packets)
		text := fmt.Sprintf("%d of %d", n, c.adapter.queues)
		if c.adapter.queues > 1 {
			text += fmt.Sprintf(", %.0f–%.0f %%", least, most)
		}
		fields = append(fields, report.Field{Name: of.name, Value: of.packets, Hidden: true},
			report.Field{Name: of.name + "_used", Value: n, Hidden: true},
			report.Field{Name: of.name + "_text", Title: of.title, Value: text, TableOnly: true})
	}
	return fields
}

// budgets check that every receive queue of each cell has carried packets: a row of four queues whose packets all
// took one would say nothing of four. A stream is one flow, and takes one queue.
func (all spreads) budgets(cells []cell, o Options) (budgets []report.Budget) {
	for _, c := range cells {
		if c.adapter.queues == 0 || c.flowCount(o) < flowsPerQueue*c.adapter.queues {
			continue
		}
		n, _, _ := used(all[c.id()].received)
		budgets = append(budgets, report.Hold(fmt.Sprintf("%s: receive queues that carried packets", c), float64(n),
			report.Count, report.Exactly, float64(c.adapter.queues)))
	}
	return budgets
}

// queueNotes say how rows of queues were measured.
func (o Options) queueNotes(cells []cell) []string {
	if len(o.Queues) == 0 {
		return nil
	}
	notes := []string{fmt.Sprintf("A row names the VMs' adapter and its pairs of queues. tap: the port is a tap with "+
		"that many queues (IFF_MULTI_QUEUE), and one thread of the lab for each carries frames between it and the VM, "+
		"whose time is in the CPU of the machine. The packets of a pair are %d flows; adapters spread flows, not "+
		"packets. Beside the queues used is the least and the largest share of the packets that one of them had.",
		o.flows())}
	if slices.ContainsFunc(cells, cell.emulated) {
		notes = append(notes, "virtio-net: Linux under QEMU's emulation, without KVM and vhost (mq=on, a CPU for each "+
			"queue, which the emulator runs in one thread). Few packets come through, so that what an agent does each "+
			"second, however few they are, weighs on each of them: these rows show that metering works by queue, "+
			"and no budget judges their rates and costs.")
	}
	return append(notes, o.leftOut()...)
}
