// Package period reads times as people write them on a command line, 5s, 2m, 1h30m, and 5 for five seconds, and writes
// ages.
package period

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Parse reads a time. A number without a unit is seconds.
func Parse(text string) (time.Duration, error) {
	trimmed := strings.TrimSpace(text)
	if n, err := strconv.ParseFloat(trimmed, 64); err == nil && plain(trimmed) {
		if d := n * float64(time.Second); math.Abs(d) < math.MaxInt64 {
			return time.Duration(d), nil
		}
	}
	if d, err := time.ParseDuration(trimmed); err == nil {
		return d, nil
	}
	return 0, fmt.Errorf("%q is not a time: say 5s, 2m or a number of seconds", text)
}

// plain says whether it is a number as people write it: not 0x1p-2, 1e3 or infinity.
func plain(number string) bool { return strings.Trim(number, "+-.0123456789") == "" }
