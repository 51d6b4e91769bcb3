package testkit

import "testing"

// A test that has a share of the run's budget does not wait for others: t.Setenv panics in a test that does.
func TestBeside_NotWithAShare(t *testing.T) {
	Weigh(t, 1)
	Beside(t)
	t.Setenv("HEDDLE_TEST_ALONE", "yes")
}
