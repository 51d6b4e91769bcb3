package printable

import "fmt"

// Count is a number with what it counts, in the form that agrees with it: "1 frame was lost", "7 frames were lost".
func Count[N ~int | ~int32 | ~int64 | ~uint | ~uint32 | ~uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
