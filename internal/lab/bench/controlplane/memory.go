package controlplane

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// memory is what a process has in memory, in bytes: resident pages, of its own and of files.
type memory struct {
	now  float64 // VmRSS
	most float64 // VmHWM: since its start, or since forgetMost
	own  float64 // RssAnon: shared with no file
}

// memoryOf reads how much the kernel says a process has.
func memoryOf(pid int) (m memory, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		into, wanted := map[string]*float64{"VmRSS:": &m.now, "VmHWM:": &m.most, "RssAnon:": &m.own}[f[0]]
		if !wanted {
			continue
		}
		kB, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			return m, fmt.Errorf("/proc/%d/status: %s %w", pid, f[0], err)
		}
		*into = kB * 1024
	}
	if m.now == 0 {
		return m, fmt.Errorf("process %d has ended", pid)
	}
	return m, nil
}

// forgetMost lets the kernel count the most memory of a process from now on.
func forgetMost(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}
