package config

import (
	"testing"

	"heddle/internal/api"
)

// Going back several times goes back further each time, and never forward to what was just taken back.
func TestS132_GoingBackTwiceGoesBackTwice(t *testing.T) {
	list := []api.AppliedConfig{{Number: 1}, {Number: 2}, {Number: 3}, {Number: 4, Restores: 2},
		{Number: 5, Restores: 1}, {Number: 6}, {Number: 7, Restores: 5}}
	for _, c := range []struct {
		at, want int
		refused  bool
	}{
		{at: 2, want: 2},         // a configuration of its own
		{at: 3, want: 1},         // it brought back 2
		{at: 4, refused: true},   // it brought back 1, before which there is none
		{at: 5, want: 5},         // what was there before
		{at: 6, refused: true},   // it brought back 5, which brought back 1
		{at: len(list), want: 7}, // the applied one is not in the history
	} {
		got, err := versionBefore(list, c.at)
		if got != c.want || (err != nil) != c.refused {
			t.Errorf("before index %d: version %d, %v, want %d", c.at, got, err, c.want)
		}
	}
	if _, err := versionBefore(list[2:], 1); err == nil {
		t.Error("the version that was brought back is not in the history, and a version is taken")
	}
}
