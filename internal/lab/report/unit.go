package report

import (
	"fmt"
	"math"
	"strconv"
)

// Unit is the base unit of a number, and determines how it is formatted for people.
type Unit string

// The units. Numbers are always in the base unit; Format scales them.
const (
	None             Unit = ""      // a plain number
	Count            Unit = "count" // number of things
	Ratio            Unit = "ratio"
	BitsPerSecond    Unit = "bit/s"
	PacketsPerSecond Unit = "packet/s"
	PerSecond        Unit = "1/s" // transactions
	Seconds          Unit = "s"
	SecondsPerGB     Unit = "s/GB" // CPU seconds per 10⁹ bytes
	Bytes            Unit = "B"
	Percent          Unit = "%"
)

// Format formats the number with three significant digits and a prefix: 34.8 Gb/s, 61.5 k/s, 300 kpps, 77.0 ns, 0.951.
func (u Unit) Format(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return notMeasured
	}
	switch u {
	case Ratio:
		return strconv.FormatFloat(x, 'f', 3, 64)
	case Count:
		return strconv.FormatFloat(x, 'f', -1, 64)
	case BitsPerSecond:
		return scaled(x, "b/s")
	case PacketsPerSecond:
		return scaled(x, "pps")
	case PerSecond:
		return scaled(x, "/s")
	case Seconds:
		return scaled(x, "s")
	case Bytes:
		return scaled(x, "B")
	case SecondsPerGB:
		return three(x) + " s/GB"
	case Percent:
		return three(x) + " %"
	}
	return three(x)
}

// scaled picks the SI prefix that leaves 1–999 before the decimal point.
func scaled(x float64, unit string) string {
	prefixes := []struct {
		factor float64
		prefix string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "µ"}, {1e-9, "n"}}
	size := math.Abs(x)
	if size == 0 {
		return "0 " + unit
	}
	for i, p := range prefixes {
		// 0.9995 k would print as "1000" one step further down.
		if size >= p.factor*0.9995 || i == len(prefixes)-1 {
			return three(x/p.factor) + " " + p.prefix + unit
		}
	}
	return ""
}

// three formats three significant digits without an exponent, and every digit of larger whole parts.
func three(x float64) string {
	size := math.Abs(x)
	switch {
	case size == 0:
		return "0"
	case size >= 99.95:
		return fmt.Sprintf("%.0f", x)
	case size >= 9.995:
		return fmt.Sprintf("%.1f", x)
	case size >= 0.9995:
		return fmt.Sprintf("%.2f", x)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
