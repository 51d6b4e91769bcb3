package bench_test

import (
	"testing"

	"heddle/internal/lab/bench"
	"heddle/internal/test/testkit/asheddle"
)

// TestMain lets the test program be the agents and senders of measurements.
func TestMain(m *testing.M) { asheddle.Env(m, bench.AsProgram) }
