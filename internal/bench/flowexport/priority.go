package flowexport

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// The priorities of agents and VMs. VMs that keep all CPUs busy with short turns leave others next to nothing: an agent, and the kernel's
// thread of RCU that it waits for, would put off draining and exporting until they rest, and what that costs would be in no rate.
const (
	agentNice = -10
	vmNice    = 5
)

// prefer has a process and the threads it will have run before others, also where the kernel shares out CPU time by session
// (sched(7), autogroup).
func prefer(pid int) error {
	dir := fmt.Sprintf("/proc/%d", pid)
	threads, err := os.ReadDir(dir + "/task")
	if err != nil {
		return fmt.Errorf("find the threads of process %d: %w", pid, err)
	}
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, tid, agentNice); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("give process %d priority: %w", pid, err)
		}
	}
	err = os.WriteFile(dir+"/autogroup", []byte(strconv.Itoa(agentNice)), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("give the session of process %d priority: %w", pid, err)
	}
	return nil
}
