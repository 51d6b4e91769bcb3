package hostile_test

import (
	"testing"

	"heddle/internal/test/testkit/asheddle"
)

// TestMain lets the test program be the agents and kept guests of the labs that tests build, and the ends of their
// traffic.
func TestMain(m *testing.M) { asheddle.Verbs(m, "agent", "lab", "traffic") }
