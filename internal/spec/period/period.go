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
	if d, ok := days(trimmed); ok {
		return d, nil
	}
	return 0, fmt.Errorf("%q is not a time: say 5s, 2m or a number of seconds", text)
}

// plain says whether it is a number as people write it: not 0x1p-2, 1e3 or infinity.
func plain(number string) bool { return strings.Trim(number, "+-.0123456789") == "" }

// mostDays is how many days a time can have.
const mostDays = 100_000

// days reads 30d and 2d12h, which the language's own reader has not: not every day has 24 hours, and those of a
// command line do.
func days(text string) (time.Duration, bool) {
	number, rest, ok := strings.Cut(text, "d")
	n, err := strconv.ParseUint(number, 10, 32)
	if !ok || err != nil || n > mostDays {
		return 0, false
	}
	d := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return d, true
	}
	more, err := time.ParseDuration(rest)
	return d + more, err == nil && more >= 0 && more < 24*time.Hour
}
