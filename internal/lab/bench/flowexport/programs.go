package flowexport

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
)

// programs are those that run for the devices of a host.
type programs []*ebpf.Program

// programsOf opens every program that a device of the namespace has at its tcx hooks.
func programsOf(ns *netns.NS) (all programs, err error) {
	ids := map[ebpf.ProgramID]bool{}
	err = ns.Do(func() error {
		links, err := netlink.LinkList()
		if err != nil {
			return fmt.Errorf("list the devices of %s: %w", ns.Name, err)
		}
		for _, l := range links {
			for _, hook := range []ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress} {
				there, err := link.QueryPrograms(link.QueryOptions{Target: l.Attrs().Index, Attach: hook})
				if err != nil {
					return fmt.Errorf("ask for the programs of %s in %s: %w", l.Attrs().Name, ns.Name, err)
				}
				for _, p := range there.Programs {
					ids[p.ID] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for id := range ids {
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open program %d of %s: %w", id, ns.Name, err), all.close())
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no device of %s has a program: there is nothing to measure", ns.Name)
	}
	return all, nil
}

// runs is how often programs ran and how long that took.
type runs struct {
	count uint64
	time  time.Duration
}

func (all programs) runs() (r runs, err error) {
	for _, p := range all {
		s, err := p.Stats()
		if err != nil {
			return r, fmt.Errorf("read the run time of a program: %w", err)
		}
		r.count += s.RunCount
		r.time += s.Runtime
	}
	return r, nil
}

func (all programs) close() error {
	var errs []error
	for _, p := range all {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// stopwatch makes the kernel time the programs of both hosts. This adds some 20 to 60 ns to each run, so it is on only
// for a moment.
type stopwatch struct {
	timing io.Closer
	hosts  [len(sides)]programs
	began  time.Time
	before [len(sides)]runs
}

func (r *rig) startWatch() (w *stopwatch, err error) {
	w = &stopwatch{}
	defer func() {
		if err != nil {
			_ = w.close() // the first error is reported
		}
	}()
	for _, s := range sides {
		if w.hosts[s], err = programsOf(r.hosts[s]); err != nil {
			return nil, err
		}
	}
	if w.timing, err = ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME)); err != nil {
		return nil, fmt.Errorf("have the kernel time programs (Linux 5.8 or newer): %w", err)
	}
	w.before, err = w.read()
	w.began = time.Now()
	return w, err
}

func (w *stopwatch) read() (all [len(sides)]runs, err error) {
	for _, s := range sides {
		if all[s], err = w.hosts[s].runs(); err != nil {
			return all, err
		}
	}
	return all, nil
}

// stop returns what ran since start, and in what time.
func (w *stopwatch) stop() (all [len(sides)]runs, took time.Duration, err error) {
	took = time.Since(w.began)
	if all, err = w.read(); err == nil {
		for _, s := range sides {
			all[s].count -= w.before[s].count
			all[s].time -= w.before[s].time
		}
	}
	return all, took, errors.Join(err, w.close())
}

func (w *stopwatch) close() error {
	var errs []error
	if w.timing != nil {
		errs = append(errs, w.timing.Close())
	}
	for _, s := range sides {
		errs = append(errs, w.hosts[s].close())
	}
	return errors.Join(errs...)
}
