package msgsize

import (
	"errors"
	"testing"
	"time"
)

func TestStarvedIntervalIsMeasuredAgain(t *testing.T) {
	for starved, ok := range map[int]bool{0: true, 1: true, tries - 1: true, tries: false} {
		n := 0
		_, carried, err := again(func() (sample, uint64, error) {
			if n++; n <= starved {
				return sample{}, 0, errStarved
			}
			return sample{}, 7, nil
		}, time.Second)
		if (err == nil) != ok || ok && carried != 7 || !ok && (n != tries || !errors.Is(err, errStarved)) {
			t.Errorf("%d starved: %d bytes after %d intervals: %v", starved, carried, n, err)
		}
	}
}
