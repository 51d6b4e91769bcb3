package experiment

import (
	"fmt"
	"slices"
	"strings"
)

// Pick finds rows of an experiment by name, in the order of the names; without names it is all rows. name says what a row is called. The
// error wraps ErrUnknown.
func Pick[R any](experiment string, all []R, name func(R) string, names []string) ([]R, error) {
	if len(names) == 0 {
		return all, nil
	}
	known := make([]string, len(all))
	for i, r := range all {
		known[i] = name(r)
	}
	picked := make([]R, len(names))
	for i, n := range names {
		at := slices.Index(known, n)
		if at < 0 {
			return nil, fmt.Errorf("%w: experiment %q has no row %q; there are %s", ErrUnknown, experiment, n, strings.Join(known, ", "))
		}
		picked[i] = all[at]
	}
	return picked, nil
}
