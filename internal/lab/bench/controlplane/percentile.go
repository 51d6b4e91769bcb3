package controlplane

import "slices"

// percentile is the smallest value that the part of all does not exceed.
func percentile(values []float64, part float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, min(len(sorted)-1, int(float64(len(sorted))*part+0.9999999)-1))]
}
