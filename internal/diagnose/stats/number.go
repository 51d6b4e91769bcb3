package stats

import (
	"math"
	"strconv"
)

// Short formats a number that is 0 or more in at most 5 characters, with suffixes in steps of a thousand: 0, 7.5, 120,
// 1.2k, 34.8G.
func Short(n float64) string {
	if math.IsNaN(n) || n < 0 {
		return "-"
	}
	const suffixes = " kMGTPE"
	i := 0
	for n >= 999.5 && i < len(suffixes)-1 {
		n /= 1000
		i++
	}
	digits := 0
	if n < 99.95 && n != math.Trunc(n) {
		digits = 1
	}
	text := strconv.FormatFloat(n, 'f', digits, 64)
	if i > 0 {
		text += suffixes[i : i+1]
	}
	return text
}
