package flows

import (
	"context"
	"errors"
	"testing"
	"time"

	"heddle/internal/cli"
)

// The first view of all hosts waits for the host whose interval ends last, however long after the first one's that is;
// but not for one that never answers.
func TestRounds_TheFirstViewHasAllHosts(t *testing.T) {
	for _, row := range []struct {
		name  string
		every time.Duration
		late  bool // host b answers while it is awaited
		hosts int
	}{
		{"a host that answers late", time.Hour, true, 2},
		{"a host that never answers", time.Millisecond, false, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, enough := newRounds[int](row.every, true), errors.New("enough")
			r.take("a", 1)
			got := []cli.Said[int]{}
			err := r.run(context.Background(), func() []string {
				if row.late {
					r.take("b", 2)
					return nil
				}
				return []string{"b"}
			}, func(list []cli.Said[int]) error {
				got = list
				return enough
			})
			if !errors.Is(err, enough) || len(got) != row.hosts {
				t.Fatalf("%v: %+v", err, got)
			}
		})
	}
}
