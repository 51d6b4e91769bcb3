package clockshift

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"heddle/internal/test/testkit"
)

// Longer makes a command one of a machine that has run for longer, by whole seconds: the clocks that count from the
// machine's start are ahead by it, in a namespace of the kernel's.
func Longer(t *testing.T, cmd *exec.Cmd, by time.Duration) {
	t.Helper()
	testkit.Tool(t, "unshare")
	path, err := exec.LookPath("unshare")
	if err != nil {
		t.Fatal(err)
	}
	seconds := fmt.Sprint(int64(by / time.Second))
	cmd.Args = append([]string{path, "--time", "--monotonic", seconds, "--boottime", seconds, cmd.Path},
		cmd.Args[1:]...)
	cmd.Path = path
}
