package adapters_test

import (
	"testing"

	"heddle/internal/test/testkit/asheddle"
)

// TestMain lets the test program be the agent and the peer of the labs that tests build.
func TestMain(m *testing.M) { asheddle.Verbs(m, "agent", "lab", "traffic") }
