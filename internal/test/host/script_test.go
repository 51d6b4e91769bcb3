package host

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestCommandLine runs the scripts of testdata/script: what the program says without root and without an agent.
func TestCommandLine(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HEDDLE_RUN_DIR", e.WorkDir+"/run")
			e.Setenv("HEDDLE_AGENT", "script")
			return nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
