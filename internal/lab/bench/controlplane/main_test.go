package controlplane_test

import (
	"os"
	"testing"

	"heddle/cmd/heddle-controller/features"
	"heddle/internal/controller/cmd"
	"heddle/internal/test/testkit/asheddle"
)

// asController is the environment variable under which the test binary is the controller.
const asController = "HEDDLE_TEST_CONTROLLER"

// TestMain lets the test program be the controller and the agent that are measured.
func TestMain(m *testing.M) {
	if os.Getenv(asController) != "" {
		os.Exit(cmd.Main("", features.List()))
	}
	asheddle.Verbs(m, "agent", "down")
}
