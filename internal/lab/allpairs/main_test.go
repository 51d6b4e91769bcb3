package allpairs_test

import (
	"testing"

	"heddle/internal/test/testkit/asheddle"
)

// TestMain lets the test program be the agents and kept guests of the labs that tests build.
func TestMain(m *testing.M) { asheddle.Verbs(m, "agent", "lab", "traffic") }
