package migration_test

import (
	"testing"

	"heddle/internal/test/testkit/asheddle"
)

// TestMain lets the test program be the agents of the labs that tests build.
func TestMain(m *testing.M) { asheddle.Verbs(m, "agent", "lab") }
