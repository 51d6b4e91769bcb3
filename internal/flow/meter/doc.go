// Package meter stores the flows of a host between the kernel's tables and the collectors.
//
// Counts are drained from a flow.Source at least every second, more often while many flows begin (see nextRound), and
// folded into one table per switch: a file in the agent's run directory, mapped into memory outside the Go heap. There
// is no file while there is no flow. An agent that is killed at any instruction leaves a file from which its successor
// continues: no count is missing, and none is in it twice, since each entry has the number of the batch that was added
// to it last.
//
// The table yields records (flow.Record): when a flow ended (idle, TCP FIN or RST and two seconds of silence, its port
// was removed, the agent stops), and while it lasts every activeTimeout. A record is made, handed to the Exporter, and
// then noted in the table as reported. If a kill comes between the last two, the successor reports it again, with the
// same key, start and totals, and at least the same delta. The table is also the queue: the exporter says how many
// records it accepts at the moment (Exporter.Budget), and records that are due wait in the table.
//
// A flow that does not fit is not stored: what a drain brings of it becomes a record at once (flow.NoResources). So
// every packet that came from the kernel is in a record. What the kernel could not record is in flow.Losses.
//
// # How to drive it
//
// One goroutine owns a Meter. In a loop it calls Step and waits as long as that says:
//
//	m, err := meter.New(meter.Options{Dir: runDir, Origin: bootID, Source: kernel, Log: log})
//	for {
//		now, err := meter.Now()
//		wait, err := m.Step(now)     // drains when it is time, makes and exports the records that are due
//		select {
//		case <-time.After(wait):
//		case change := <-changes: // of the configuration
//			err = m.Configure(now, change.switches)
//		case <-stop:
//			m.Stop(now…)             // the last drain and the last record of every flow
//			return
//		}
//	}
//
// Flows, Statistics, Subscribe and a Sampler may be used by any goroutine.
//
// Cost: a flow takes 256 bytes in the file and 20 bytes outside it. A short flow takes 0.3 µs from the drain until its
// entry is free again. To find due records, the times of groups of 128 entries are read, and those of single entries
// only in groups in which one may be due: with a million flows of which none is due, this takes 4–20 µs. Memory that a
// processor would have to wait for is prefetched for many flows at once.
//
//layout:floor=kernel
package meter
