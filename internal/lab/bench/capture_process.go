package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// runningCapture is a "heddle capture" that writes to /dev/null.
type runningCapture struct {
	cmd  *exec.Cmd
	errs *bufio.Reader
}

// start starts a capture and returns when it is active. It is killed when ctx ends.
func (r *captureRun) start(ctx context.Context, at capturedHost, args []string) (*runningCapture, error) {
	all := append(append(slices.Clone(r.opts.Heddle[1:]), "capture", "--agent", "bench", "--run-dir",
		filepath.Join(at.dir, "run"), "-w", os.DevNull), args...)
	cmd := exec.CommandContext(ctx, r.opts.Heddle[0], all...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := at.ns.Start(cmd); err != nil {
		return nil, fmt.Errorf("start a capture: %w", err)
	}
	c := &runningCapture{cmd: cmd, errs: bufio.NewReader(errs)}
	line, err := c.errs.ReadString('\n')
	if err != nil || !strings.Contains(line, "capturing") {
		c.kill()
		return nil, fmt.Errorf("the capture does not begin: %s", strings.TrimSpace(line))
	}
	return c, nil
}

// kill kills a capture that was not ended; nil has nothing to kill.
func (c *runningCapture) kill() {
	if c != nil && c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}

var captureSummary = regexp.MustCompile(`(\d+) selected by the switch, (\d+) lost`)

// end ends a capture in an orderly way and reads its counts.
func (c *runningCapture) end() (selected, lost uint64, err error) {
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		return 0, 0, fmt.Errorf("end the capture: %w", err)
	}
	said, err := io.ReadAll(c.errs)
	if err != nil {
		return 0, 0, fmt.Errorf("read how the capture ended: %w", err)
	}
	if err := c.cmd.Wait(); err != nil {
		return 0, 0, fmt.Errorf("the capture: %w: %s", err, said)
	}
	m := captureSummary.FindSubmatch(said)
	if m == nil {
		return 0, 0, fmt.Errorf("the capture does not say what it counted: %s", said)
	}
	selected, _ = strconv.ParseUint(string(m[1]), 10, 64) // digits only
	lost, _ = strconv.ParseUint(string(m[2]), 10, 64)
	return selected, lost, nil
}
