package meter

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/flow"
)

// Settings are how the flows of one switch are stored (docs/reference/configuration.md).
type Settings struct {
	ActiveTimeout time.Duration // 60 s to 3600 s: a flow that lasts is reported this often
	IdleTimeout   time.Duration // 10 s to 600 s: a flow ends this long after its last packet
	MaxFlows      int           // how many flows have an entry at most; each takes 256 bytes, and 20 outside the file
	Biflow        bool          // report both directions of a conversation in one record (RFC 5103)
	// for the reports; the kernel does it: N packets are skipped after each that is counted
	Sampling     int
	InternalOnly bool // export only flows between two ports of this host that are no uplinks (S68)
}

// DefaultSettings are the settings of a switch that has none.
func DefaultSettings() Settings {
	return Settings{ActiveTimeout: time.Minute, IdleTimeout: 15 * time.Second, MaxFlows: 1 << 20}
}

func (s Settings) withDefaults() Settings {
	d := DefaultSettings()
	if s.ActiveTimeout <= 0 {
		s.ActiveTimeout = d.ActiveTimeout
	}
	if s.IdleTimeout <= 0 {
		s.IdleTimeout = d.IdleTimeout
	}
	if s.MaxFlows <= 0 {
		s.MaxFlows = d.MaxFlows
	}
	return s
}

// Instant is a moment by two clocks. Wall may be set back and forth; Up is the time since the host was started and is
// never set.
type Instant struct {
	Wall time.Time
	Up   time.Duration
}

// Now reads both clocks.
func Now() (Instant, error) {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return Instant{}, fmt.Errorf("read the host's clock: %w", err)
	}
	return Instant{Wall: time.Now(), Up: time.Duration(up.Nano())}, nil
}

// Exporter exports the records of one switch. One goroutine calls it.
type Exporter interface {
	// Budget is how many records it accepts now without overrunning a collector.
	Budget(now Instant) int
	// Export sends records, or counts them as lost: when it returns, it is responsible for them. The records and
	// what they point to are valid until then. points are the observation points of their slots.
	Export(now Instant, points flow.Points, records []flow.Record)
	// Tick is called once per Options.Every, after a drain, for work that depends on time. state is what can be
	// reported besides records.
	Tick(now Instant, state func() State)
}

// State is what an exporter can report about a switch besides its records.
type State struct {
	Points     flow.Points // of the switch
	Losses     []flow.Loss // what the kernel could not record at them
	Statistics Statistics
	Sampling   int // N: one packet is counted, N are not; 0 = every packet is
}

// Statistics say what happened to the counts of one switch's points, since the agent began.
type Statistics struct {
	Flows    int // that have an entry at present
	MaxFlows int
	// Folded is what came from the kernel's tables, InRecords what was reported of it; the difference is in entries
	// and will be reported. What an earlier agent folded is only in InRecords.
	Folded, InRecords Sum
	// Excluded is the part of InRecords that was not exported because of internalFlowsOnly.
	Excluded Sum
	// Overflow is the part of InRecords that was reported at once because the table was full.
	Overflow Sum
	// Records is how many records were made.
	Records uint64
	// FileBytes is how much memory the table takes at present.
	FileBytes int64
}

// Sum is packets, bytes of layer 3 and bytes of frames.
type Sum struct{ Packets, Bytes, FrameBytes uint64 }

func (s *Sum) add(c *flow.Counts) {
	s.Packets, s.Bytes, s.FrameBytes = s.Packets+c.Packets, s.Bytes+c.Bytes, s.FrameBytes+c.FrameBytes
}

func (s *Sum) addRecord(r *flow.Record) {
	s.add(&r.Delta)
	if r.Reverse != nil {
		s.add(&r.Reverse.Delta)
	}
}
