package run

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// BusyNote warns, in a sentence, when other work keeps the machine's processors busy; "" when they are idle. Call it
// before the run, so that the run's own load is not counted.
func BusyNote() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "" // this should not fail: only the warning is lost
	}
	return busyNote(string(data), runtime.NumCPU())
}

func busyNote(loadavg string, cpus int) string {
	first, _, _ := strings.Cut(loadavg, " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil || load < float64(cpus)/2 {
		return ""
	}
	return fmt.Sprintf("Other work kept the machine busy before the run (load %.1f on %d CPUs): counts are exact all "+
		"the same, throughput and times are not to be relied on.",
		load, cpus)
}
