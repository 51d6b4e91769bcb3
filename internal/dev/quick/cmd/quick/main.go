package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"heddle/internal/dev/quick"
)

func main() {
	base := flag.String("base", "", "compare with this `commit` (default: where the branch left its upstream, or "+
		"HEAD)")
	within := flag.Duration("within", 55*time.Second, "end after this `time`, whatever is left")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	good, err := test(ctx, *base, time.Now().Add(*within))
	if err != nil {
		fmt.Fprintln(os.Stderr, "quick:", err)
	}
	if err != nil || !good {
		os.Exit(1)
	}
}

// test runs the tests of the packages that the change reaches, and says whether all were good.
func test(ctx context.Context, base string, end time.Time) (bool, error) {
	files, err := quick.Changed(".", base)
	if err != nil {
		return false, err
	}
	all, err := quick.Read(".")
	if err != nil {
		return false, err
	}
	chosen := quick.Choose(all, files)
	if len(chosen) == 0 {
		fmt.Println("nothing changed: another commit to compare with is named by BASE=…")
		return true, nil
	}
	fmt.Printf("%d files changed, which the tests of %d packages can tell\n", len(files), len(chosen))
	r := &run{left: chosen}
	within, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() { r.work(within) })
	}
	workers.Wait()
	fmt.Printf("%d packages passed, %d failed\n", r.passed, len(r.failed))
	if len(r.failed) > 0 {
		fmt.Println("failed:", strings.Join(r.failed, " "))
	}
	if left := append(r.cut, r.left...); len(left) > 0 {
		fmt.Printf("left to make test, since the time was over: %d packages: %s\n", len(left), shortened(left))
	}
	return len(r.failed) == 0 && ctx.Err() == nil, nil
}

// shortened is a list of which the first are named.
func shortened(list []string) string {
	const most = 8
	if len(list) <= most {
		return strings.Join(list, " ")
	}
	return fmt.Sprintf("%s and %d others", strings.Join(list[:most], " "), len(list)-most)
}

// run is the state of what the workers share.
type run struct {
	mu          sync.Mutex
	left        []string
	failed, cut []string // cut: were ended before their tests had
	passed      int
}

// next is the next package; false where none is left, or no time.
func (r *run) next(ctx context.Context) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.left) == 0 || ctx.Err() != nil {
		return "", false
	}
	dir := r.left[0]
	r.left = r.left[1:]
	return dir, true
}

// patience is how long a test program that is interrupted may take to clean up.
const patience = 20 * time.Second

// work tests packages until there are no more, or the time is over.
func (r *run) work(ctx context.Context) {
	for {
		dir, ok := r.next(ctx)
		if !ok {
			return
		}
		cmd := exec.CommandContext(ctx, "go", "test", "-short", "./"+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) } // the test program, too
		cmd.WaitDelay = patience
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
		out, err := cmd.CombinedOutput()
		r.ended(dir, out, err, ctx.Err() != nil)
	}
}

func (r *run) ended(dir string, out []byte, err error, cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.passed++
	case cut:
		r.cut = append(r.cut, dir)
		return // what it says is about its end
	default:
		r.failed = append(r.failed, dir)
	}
	os.Stdout.Write(out)
}
