package flowexport_test

import (
	"testing"

	"heddle/internal/test/testkit/asheddle"
)

// TestMain lets the test program be the agents of the lab and the ends of measurements.
func TestMain(m *testing.M) { asheddle.Verbs(m, "agent", "lab", "traffic") }
