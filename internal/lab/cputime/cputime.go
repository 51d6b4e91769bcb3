package cputime

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// userHZ is the unit of times in /proc/stat, per second (proc(5): USER_HZ, 100 on every architecture Go runs on).
const userHZ = 100

// Machine is the time that all processors together have been busy since boot: user, system and interrupt time, in steps
// of 10 ms. Forwarding happens in interrupts, on behalf of no process, so only the whole machine's time includes all of
// it.
func Machine() (time.Duration, error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read the CPU times: %w", err)
	}
	return parseStat(string(data))
}

func parseStat(stat string) (time.Duration, error) {
	first, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(first)
	// cpu user nice system idle iowait irq softirq steal guest guest_nice; the last two are included in the first
	// two.
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q, which is not the line of all CPUs", first)
	}
	var ticks time.Duration
	for _, i := range []int{1, 2, 3, 6, 7} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		ticks += time.Duration(n)
	}
	return ticks * (time.Second / userHZ), nil
}

// Process is the CPU time of a process so far, user and system, exact to the nanosecond (proc_pid_schedstat of each
// thread). Threads that have ended are not included.
func Process(pid int) (sum time.Duration, err error) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	for _, t := range threads {
		b, err := os.ReadFile(dir + "/" + t.Name() + "/schedstat")
		if errors.Is(err, os.ErrNotExist) { // it has just ended
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
		}
		fields := bytes.Fields(b)
		if len(fields) == 0 {
			continue
		}
		ns, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}
