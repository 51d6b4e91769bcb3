package period

import (
	"fmt"
	"time"
)

// Age is how long ago something was, or for how long it has been so, in its two largest units: 45s, 10m, 3h20m, 2d5h.
// Units that are not over yet do not count; a time to come is 0s, as another clock may be ahead.
func Age(d time.Duration) string {
	const day = 24 * time.Hour
	two := func(large, small time.Duration, largeName, smallName string) string {
		text := fmt.Sprint(int64(d/large)) + largeName
		if rest := d % large / small; rest > 0 {
			text += fmt.Sprint(int64(rest)) + smallName
		}
		return text
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, d)/time.Second)
	case d < time.Hour:
		return two(time.Minute, time.Second, "m", "s")
	case d < day:
		return two(time.Hour, time.Minute, "h", "m")
	}
	return two(day, time.Hour, "d", "h")
}
