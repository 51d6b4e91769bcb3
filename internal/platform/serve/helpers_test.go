package serve

import (
	"testing"
	"time"
)

// patience is how long a condition may take; no test waits that long when all is well.
const patience = 2 * time.Minute

// must fails the test on an error.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
