package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/lab/report"
)

// CodecOptions are the options of "heddle bench ipfix-codec".
type CodecOptions struct {
	// Rounds is how often every cell is measured, interleaved; at least 1, and 10 for numbers that are published.
	Rounds int
	// Records is how many are written, read or sent per cell and round; at least 1.
	Records int
	// Progress is called before every round; nil for silence.
	Progress func(done, total int, what string)
	Now      func() time.Time
}

// Quick sets rounds and records so that all of it takes a few seconds.
func (o *CodecOptions) Quick() { o.Rounds, o.Records = 4, 200_000 }

// Check says what is wrong with the options.
func (o CodecOptions) Check() error {
	if o.Rounds < 1 || o.Records < 1 {
		return errors.New("rounds and records must be positive")
	}
	return nil
}

// Budgets of the codec, per record, and of an agent's export, per core.
const (
	encodeBudget = 300e-9 // seconds
	exportBudget = 500_000
)

// codecCell is one operation on records of one shape.
type codecCell struct {
	work  string
	shape *codecShape
	// run processes at least n records and returns how many it processed.
	run func(records int) (int, error)
	// agent, if there is one, processes them.
	agent *agentPath
	// recordBytes is the length of a record.
	recordBytes func() int
	// seconds of CPU time per record and allocations per record, one value per round.
	seconds, allocations []float64
}

// The operations on records.
const (
	workEncode = "encode"
	workDecode = "decode"
	workSend   = "encode, send over UDP"
	workAgent  = "agent: fold, expire, encode, send"
	workKernel = "agent: drain, fold, expire, encode, send"
)

// Codec measures on one core how many flow records per second are encoded as IPFIX, decoded, and sent over UDP on this
// machine, and how many an agent processes, from the counts to the message that is sent. Rates are per CPU time of the
// working thread, so that other work on the machine affects them little.
func Codec(ctx context.Context, o CodecOptions) (rep *report.Report, err error) {
	if o.Rounds < 1 || o.Records < 1 {
		return nil, errors.New("rounds and records must be positive")
	}
	env := report.Collect(o.Now())
	cells, end, err := codecCells(min(codecTable, o.Records))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	for round := range o.Rounds + 1 {
		if o.Progress != nil {
			o.Progress(round, o.Rounds+1, "round of records")
		}
		for _, c := range cells {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := c.measure(o.Records, round > 0); err != nil { // the first fills the caches
				return nil, fmt.Errorf("%s of shape %s: %w", c.work, c.shape.name, err)
			}
		}
	}
	return codecReport(env, cells, o), nil
}

// codecCells are all cells. end closes what they opened.
func codecCells(table int) (cells []*codecCell, end func() error, err error) {
	var clean cleanup
	defer func() {
		if err != nil {
			err = errors.Join(err, clean.run())
		}
	}()
	wire, err := newLoopback()
	if err != nil {
		return nil, nil, err
	}
	clean.add(wire.close)
	shapes, err := codecShapes()
	if err != nil {
		return nil, nil, err
	}
	work, kernel := workAgent, os.Geteuid() == 0
	if kernel {
		work = workKernel
	}
	for _, s := range shapes {
		messages, err := s.messages(10_000)
		if err != nil {
			return nil, nil, err
		}
		agent, err := newAgentPath(s, wire.receiver.LocalAddr().(*net.UDPAddr), table, kernel)
		if err != nil {
			return nil, nil, err
		}
		clean.add(agent.close)
		length := s.template.RecordLength
		cells = append(cells,
			&codecCell{work: workEncode, shape: s, recordBytes: length, run: func(n int) (int, error) {
				return s.encode(n, func([]byte) error { return nil })
			}},
			&codecCell{work: workDecode, shape: s, recordBytes: length, run: func(n int) (int, error) {
				return s.decode(n, messages)
			}},
			&codecCell{work: workSend, shape: s, recordBytes: length, run: func(n int) (int, error) {
				return wire.encode(s, n)
			}},
			&codecCell{work: work, shape: s, recordBytes: agent.recordBytes, agent: agent})
	}
	return cells, clean.run, nil
}

// measure runs the cell once on a thread of its own.
func (c *codecCell) measure(records int, keep bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var watch stopwatch
	if err := watch.start(); err != nil {
		return err
	}
	var err error
	if c.agent != nil {
		records, err = c.agent.run(records, watch.aside)
	} else {
		records, err = c.run(records)
	}
	if err == nil {
		err = watch.stop()
	}
	if err == nil && keep {
		c.seconds = append(c.seconds, watch.cpu.Seconds()/float64(records))
		c.allocations = append(c.allocations, float64(watch.mallocs)/float64(records))
	}
	return err
}

// stopwatch measures a thread's CPU time and the program's allocations.
type stopwatch struct {
	cpu     time.Duration
	mallocs uint64
}

// start continues from what was measured before.
func (w *stopwatch) start() error {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.mallocs -= m.Mallocs
	t, err := threadTime()
	w.cpu -= t
	return err
}

func (w *stopwatch) stop() error {
	t, err := threadTime()
	w.cpu += t
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.mallocs += m.Mallocs
	return err
}

// aside does something that is not measured.
func (w *stopwatch) aside(do func() error) error {
	return errors.Join(w.stop(), do(), w.start())
}

// threadTime is the CPU time of the calling thread, including what the kernel did for it.
func threadTime() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0, fmt.Errorf("CPU time of the thread: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

func codecReport(env report.Environment, cells []*codecCell, o CodecOptions) *report.Report {
	rep := &report.Report{Name: "bench ipfix-codec", Environment: env}
	for _, c := range cells {
		rates := make([]float64, len(c.seconds))
		for i, s := range c.seconds {
			rates[i] = 1 / s
		}
		perRecord, allocations := report.Summarise(c.seconds), report.Summarise(c.allocations)
		rep.Rows = append(rep.Rows, report.Row{
			{Name: "work", Value: c.work},
			{Name: "shape", Value: c.shape.name},
			{Name: "record_bytes", Title: "record", Value: c.recordBytes(), Unit: report.Bytes},
			{Name: "rate", Title: "records per core and second (quartiles)", Value: report.Summarise(rates),
				Unit: report.PerSecond},
			{Name: "time", Title: "per record", Value: perRecord, Unit: report.Seconds, Brief: true},
			{Name: "allocations", Title: "allocations per record", Value: allocations.Median, Hidden: true},
			{Name: "samples", Value: c.seconds, Hidden: true},
		})
		switch c.work {
		case workEncode:
			rep.Budgets = append(rep.Budgets,
				report.Hold("encode a record, "+c.shape.name, perRecord.Median, report.Seconds, report.AtMost,
					encodeBudget),
				report.Hold("allocations per encoded record, "+c.shape.name, allocations.Median, report.Count,
					report.Exactly, 0))
		case workAgent, workKernel:
			if c.shape.biflow {
				break // such a record takes two flows
			}
			rep.Budgets = append(rep.Budgets,
				report.Hold("records through an agent per core, "+c.shape.name, report.Summarise(rates).Median,
					report.PerSecond, report.AtLeast, exportBudget))
		}
	}
	rep.Notes = []string{fmt.Sprintf("%d interleaved rounds of %d records or more, of %d different flows, in the "+
		"layouts that the exporter sends. Rates are by the "+
		"CPU time of the one thread that works. Messages have at most %d bytes, as on a link of MTU 1500; sent, each "+
		"is one datagram to a socket of this machine, "+
		"many with one call, and divided for a receiver that works on another thread and reads one by one. Decoding "+
		"looks up its template and reads three fields of every record. An agent's table "+
		"has %d flows here; a record of it stands with its part of headers and templates. A biflow record is made of "+
		"two flows. "+
		"As root, the flows come out of the kernel's tables; else they are in memory already.", o.Rounds, o.Records,
		codecFlows, codecMessage, min(codecTable, o.Records))}
	return rep
}
