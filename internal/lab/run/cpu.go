package run

import (
	"fmt"
	"os"
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
