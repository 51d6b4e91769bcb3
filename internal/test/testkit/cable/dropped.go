package cable

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Dropped is how many frames the machine's own queues have lost since it was started, on all of its CPUs: the kernel
// keeps what comes from a veth device in a queue for each CPU, and drops what does not fit while it has no time to
// empty it. Such a frame is lost on the cable, whoever it was for.
func Dropped() (n uint64, err error) {
	text, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			return 0, fmt.Errorf("/proc/net/softnet_stat: %q is no line of it", line)
		}
		cpu, err := strconv.ParseUint(fields[1], 16, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/net/softnet_stat: %w", err)
		}
		n += cpu
	}
	return n, nil
}
