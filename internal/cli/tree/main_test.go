package tree

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain makes garbage collections rarer. Tests make the tree of all commands some two thousand times, and collecting
// the trees took as long as making them.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
