package report

import (
	"math"
	"slices"
)

// Spread is the result of repeated rounds of one measurement: the median and how far the rounds are apart. The values
// have the unit of the samples.
type Spread struct {
	Median float64 `json:"median"`
	Q1     float64 `json:"q1"`
	Q3     float64 `json:"q3"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Rounds int     `json:"rounds"`
}

// Summarise returns the spread of the finite samples. If there are none, Rounds is 0 and the values mean nothing.
func Summarise(samples []float64) Spread {
	s := slices.DeleteFunc(slices.Clone(samples), func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	if len(s) == 0 {
		return Spread{}
	}
	slices.Sort(s)
	return Spread{
		Median: quantile(s, 0.5), Q1: quantile(s, 0.25), Q3: quantile(s, 0.75),
		Min: s[0], Max: s[len(s)-1], Rounds: len(s),
	}
}

// quantile interpolates linearly between the two nearest of the sorted samples (Hyndman and Fan's type 7, the default
// of R and NumPy). q is 0–1.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	lo := int(math.Floor(at))
	if lo+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	part := at - float64(lo)
	return sorted[lo]*(1-part) + sorted[lo+1]*part
}

// Ratios divides round by round: the i-th result is a[i]/b[i]. Comparing within a round cancels disturbances of both
// sides, which the ratio of two medians does not. A round in which either side has no positive finite value is left
// out; extra rounds of the longer side are ignored.
func Ratios(a, b []float64) []float64 {
	var out []float64
	for i := range min(len(a), len(b)) {
		r := a[i] / b[i]
		if a[i] > 0 && b[i] > 0 && !math.IsNaN(r) && !math.IsInf(r, 0) {
			out = append(out, r)
		}
	}
	return out
}
