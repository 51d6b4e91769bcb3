package outage

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"heddle/internal/lab/cputime"
)

// What an idle agent may use.
const (
	restCPU    = 0.01     // of a core
	restMemory = 40 << 20 // bytes
	settleTime = 5 * time.Second
)

// atRest is what the agent of a host uses while nothing happens.
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
	for _, wait := range []time.Duration{min(settleTime, d), d} { // first wait for the effects of the start
		before, err := cputime.Process(st.Agent.PID)
		if err != nil {
			return r, err
		}
		began := time.Now()
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return r, ctx.Err()
		}
		after, err := cputime.Process(st.Agent.PID)
		if err != nil {
			return r, err
		}
		r.cpu = (after - before).Seconds() / time.Since(began).Seconds()
	}
	r.ports = s.ports
	r.memory, err = resident(st.Agent.PID)
	return r, err
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
