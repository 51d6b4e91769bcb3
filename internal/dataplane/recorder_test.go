package dataplane

import (
	"testing"

	"heddle/internal/test/testkit"
)

func TestRecorderLoads(t *testing.T) {
	testkit.Root(t)
	r, err := NewRecorder()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}
