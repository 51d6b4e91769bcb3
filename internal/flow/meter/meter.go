package meter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"heddle/internal/flow"
)

// Options are the fixed settings of a Meter.
type Options struct {
	Dir string // of the agent: it should be on a tmpfs and not survive a restart of the host
	// Origin identifies the kernel's tables: when it changes, the numbers of batches start anew. It must contain at
	// least the host's boot ID, and better also distinguishes tables that were made one after the other.
	Origin string
	Source flow.Source
	Log    *slog.Logger
	// Every is the longest time between two drains of the source; 1 s if 0. While many flows begin, drains are more
	// frequent, so that each brings some 4,096 of them, but at least 50 ms apart.
	Every time.Duration
}

// Switch is how the flows of a switch are stored and who gets its records.
type Switch struct {
	Settings Settings
	Exporter Exporter // nil when nobody gets them
}

// Meter stores the flows of a host.
type Meter struct {
	o        Options
	harvest  *harvest
	gone     map[uint16]bool
	overflow *harvest
	watchers watchers
	pause    time.Duration // how long it waits for exporters that accept nothing

	mu       sync.Mutex // held to change the fields below, and to read them from other goroutines
	switches map[string]*switchFlows
	points   flow.Points
	rounds   rounds
	bySlot   []*switchFlows // the switch to which a slot belongs
	unknown  Sum
}

// switchFlows is a switch whose flows are stored.
type switchFlows struct {
	name       string
	table      *table
	exporter   Exporter
	configured bool
	stats      Statistics
}

// slice is how many records are made, exported and settled together.
const slice = 1024

// New continues with what is in the directory.
func New(o Options) (*Meter, error) {
	if o.Every <= 0 {
		o.Every = time.Second
	}
	m := &Meter{o: o, switches: map[string]*switchFlows{}, harvest: newHarvest(slice), overflow: newHarvest(slice)}
	points, err := readPoints(o.Dir)
	if err != nil {
		o.Log.Warn("the observation points of the agent before are unknown: its flows keep their numbers only if the "+
			"ports have theirs", "error", err)
	}
	m.points = points
	files, err := filepath.Glob(filepath.Join(o.Dir, filePrefix+"*"+fileSuffix))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name, err := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), filePrefix), fileSuffix))
		if err != nil {
			continue
		}
		if _, err := m.keep(name, DefaultSettings()); err != nil {
			m.release()
			return nil, err
		}
	}
	m.route()
	return m, nil
}

const (
	filePrefix = "flows."
	fileSuffix = ".table"
)

// keep finds the switch, or begins to store its flows.
func (m *Meter) keep(name string, set Settings) (*switchFlows, error) {
	if k := m.switches[name]; k != nil {
		return k, nil
	}
	path := filepath.Join(m.o.Dir, filePrefix+url.PathEscape(name)+fileSuffix)
	t, err := newTable(path, originSum(m.o.Origin), set.withDefaults(), m.o.Log.With("switch", name))
	if err != nil {
		return nil, fmt.Errorf("flows of switch %s: %w", name, err)
	}
	k := &switchFlows{name: name, table: t}
	m.mu.Lock()
	m.switches[name] = k
	m.mu.Unlock()
	return k, nil
}

// Configure sets which switches there are and how their flows are stored. The next Step ends the flows of a switch that
// is not named any more; its records go to its exporter, if it has one.
func (m *Meter) Configure(now Instant, switches map[string]Switch) error {
	var errs []error
	for name, s := range switches {
		k, err := m.keep(name, s.Settings)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		m.mu.Lock()
		k.exporter, k.configured = s.Exporter, true
		m.mu.Unlock()
		if err := k.table.configure(s.Settings.withDefaults()); err != nil {
			errs = append(errs, fmt.Errorf("flows of switch %s: %w", name, err))
		}
	}
	for name, k := range m.switches {
		if _, named := switches[name]; !named && k.configured {
			m.end(k, now)
			k.configured = false
		}
	}
	m.route()
	return errors.Join(errs...)
}

// end reports every flow of the switch one last time.
func (m *Meter) end(k *switchFlows, now Instant) {
	k.table.stop(true)
	for m.reap(k, now, slice, nil) > 0 {
	}
	k.table.stop(false)
}

// Step does the work that is due and returns after what time, at the latest, to call it again.
func (m *Meter) Step(now Instant) (time.Duration, error) {
	var err error
	if m.rounds.due(now) {
		err = m.drain(now)
	}
	wait, more, made := m.rounds.wait(now), false, 0
	for _, k := range m.switches {
		n, left := m.reapWithin(k, now)
		made, more = made+n, more || left
	}
	if m.pause = nextPause(m.pause, made); more {
		wait = min(wait, m.pause)
	} else {
		err = errors.Join(err, m.forget())
	}
	return max(wait, 0), errors.Join(err, m.tidy())
}

// forget drops points that are gone, once the last of their flows has been reported.
func (m *Meter) forget() error {
	if len(m.gone) == 0 {
		return nil
	}
	left := maps.Clone(m.points)
	maps.DeleteFunc(left, func(slot uint16, _ flow.Point) bool { return m.gone[slot] })
	m.gone = nil
	return m.setPoints(left)
}

// Records that an exporter could not accept are tried again after retry, and at growing intervals while it accepts
// nothing at all.
const (
	retry     = 8 * time.Millisecond
	mostPause = 50 * time.Millisecond
)

// nextPause is how long to wait for exporters that accepted this many records, after a pause.
func nextPause(before time.Duration, made int) time.Duration {
	if made > 0 {
		return retry
	}
	return min(max(2*before, retry), mostPause)
}

// Stop drains one last time, reports every flow one last time as fast as the exporters accept the records, and closes
// the files. What does not get done before ctx ends stays in them, for the next agent.
func (m *Meter) Stop(ctx context.Context, clock func() (Instant, error)) error {
	defer m.release()
	now, err := clock()
	if err != nil {
		return err
	}
	err = m.drain(now)
	for _, k := range m.switches {
		k.table.stop(true)
	}
	for more := true; more && ctx.Err() == nil; {
		more = false
		for _, k := range m.switches {
			_, left := m.reapWithin(k, now)
			more = more || left
		}
		if more {
			select {
			case <-ctx.Done():
			case <-time.After(retry):
			}
		}
		var late error
		if now, late = clock(); late != nil {
			return errors.Join(err, late)
		}
	}
	left := 0
	for _, k := range m.switches {
		left += k.table.flows()
	}
	if left > 0 {
		return err // the ports of the flows stay known
	}
	return errors.Join(err, m.setPoints(nil), m.tidy())
}

// release unmaps and closes all files, which stay.
func (m *Meter) release() {
	for _, k := range m.switches {
		k.table.mu.Lock()
		k.table.release()
		k.table.mu.Unlock()
	}
}

// tidy removes what is not needed any more.
func (m *Meter) tidy() error {
	var errs []error
	for name, k := range m.switches {
		expected := m.observed(k)
		if err := k.table.tidy(expected); err != nil {
			errs = append(errs, fmt.Errorf("flows of switch %s: %w", name, err))
		}
		if !expected && !k.configured && k.table.flows() == 0 {
			m.mu.Lock()
			delete(m.switches, name)
			m.mu.Unlock()
		}
	}
	return errors.Join(errs...)
}
