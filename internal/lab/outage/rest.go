package outage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// What the agent may take while nothing happens.
const (
	restCPU    = 0.01     // of a core
	restMemory = 40 << 20 // bytes
	settleTime = 5 * time.Second
)

// atRest is what the agent of a host takes while nothing happens.
type atRest struct {
	ports  int
	cpu    float64 // of a core
	memory float64 // resident, bytes
}

// watchRest measures the agent for that long.
func (s *scene) watchRest(ctx context.Context, d time.Duration) (r atRest, err error) {
	st, err := s.agent.State(ctx)
	if err != nil {
		return r, err
	}
	for _, wait := range []time.Duration{min(settleTime, d), d} { // first what the start left behind
		before, err := cpuTime(st.Agent.PID)
		if err != nil {
			return r, err
		}
		began := time.Now()
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return r, ctx.Err()
		}
		after, err := cpuTime(st.Agent.PID)
		if err != nil {
			return r, err
		}
		r.cpu = (after - before).Seconds() / time.Since(began).Seconds()
	}
	r.ports = s.ports
	r.memory, err = resident(st.Agent.PID)
	return r, err
}

// cpuTime is the CPU time of a process so far (proc_pid_schedstat: nanoseconds of each thread).
func cpuTime(pid int) (sum time.Duration, err error) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, t := range threads {
		b, err := os.ReadFile(dir + "/" + t.Name() + "/schedstat")
		if errors.Is(err, os.ErrNotExist) { // it has just ended
			continue
		}
		if err != nil {
			return 0, err
		}
		ns, err := strconv.ParseInt(string(bytes.Fields(b)[0]), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

// resident is the memory of a process that is not shared with a file.
func resident(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if kb, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, err := strconv.ParseFloat(strings.Fields(kb)[0], 64)
			return n * 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no RssAnon", pid)
}
