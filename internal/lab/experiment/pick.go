package experiment

import (
	"slices"

	"heddle/internal/spec/known"
)

// Pick finds rows of an experiment by name, in the order of the names; without names it is all rows. name returns a
// row's name. The error wraps ErrUnknown.
func Pick[R any](experiment string, all []R, name func(R) string, names []string) ([]R, error) {
	if len(names) == 0 {
		return all, nil
	}
	there := RowNames(all, name)
	picked := make([]R, len(names))
	for i, n := range names {
		at := slices.Index(there, n)
		if at < 0 {
			return nil, unknown(known.Names{What: "row", Owner: "experiment " + experiment, All: there}.Missing(n))
		}
		picked[i] = all[at]
	}
	return picked, nil
}

// RowNames are the names of rows, in their order.
func RowNames[R any](all []R, name func(R) string) []string {
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = name(r)
	}
	return names
}

// unknown is the error for an unknown name, in whole sentences; it wraps ErrUnknown.
type unknown string

func (e unknown) Error() string { return string(e) }
func (e unknown) Unwrap() error { return ErrUnknown }
