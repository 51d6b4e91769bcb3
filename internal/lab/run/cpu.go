package run

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// userHZ is the unit of times in /proc/stat, per second (proc(5): USER_HZ, 100 on every architecture Go runs on).
const userHZ = 100

// cpuSeconds is the time that all processors together have been busy since boot: user, system and interrupt time. Forwarding
// happens in interrupts, on behalf of no process, so that nothing less than the whole machine counts it all.
func cpuSeconds() (float64, error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read the CPU times: %w", err)
	}
	return parseCPU(string(data))
}

func parseCPU(stat string) (float64, error) {
	first, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(first)
	// cpu user nice system idle iowait irq softirq steal guest guest_nice; the last two are in the first two already.
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q, which is not the line of all CPUs", first)
	}
	var ticks uint64
	for _, i := range []int{1, 2, 3, 6, 7} {
		n, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		ticks += n
	}
	return float64(ticks) / userHZ, nil
}

// BusyNote warns, in a sentence, when other work keeps the machine's processors from what is to be measured; "" when it is
// quiet. It is asked before the run, whose own load is not to be warned of.
func BusyNote() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "" // not the place to fail: the warning is all that is lost
	}
	return busyNote(string(data), runtime.NumCPU())
}

func busyNote(loadavg string, cpus int) string {
	first, _, _ := strings.Cut(loadavg, " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil || load < float64(cpus)/2 {
		return ""
	}
	return fmt.Sprintf("Other work kept the machine busy before the run (load %.1f on %d CPUs): counts are exact all the same, throughput and times are not to be relied on.",
		load, cpus)
}
