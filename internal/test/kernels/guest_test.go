package kernels

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heddle/internal/lab/cputime"
	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
	"heddle/internal/test/testkit"
)

// kernelsVar names the kernels to test, as image.Options.Kernel does, separated by spaces; without it, the oldest
// supported one that packages offer. "make kernels" and CI set it.
const kernelsVar = "HEDDLE_KERNELS"

// allVar asks for the tests that take minutes under emulation, too.
const allVar = "HEDDLE_KERNELS_ALL"

// bootPatience is how long a guest may take to boot, guestPatience how long a test binary in it may say nothing: how
// long it takes in all depends on what else the machine does.
const (
	bootPatience  = 5 * time.Minute
	guestPatience = 5 * time.Minute
)

// forEachKernel runs the test for each kernel, as a test of its own.
func forEachKernel(t *testing.T, f func(t *testing.T, img *image.Image)) {
	t.Helper()
	testkit.Root(t)
	testkit.Tool(t, "qemu-system-x86_64", "go")
	testkit.Weigh(t, 2)
	list := strings.Fields(os.Getenv(kernelsVar))
	if len(list) == 0 {
		list = []string{image.OldestKernel}
	}
	for _, kernel := range list {
		t.Run(filepath.Base(kernel), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			img, err := image.Build(ctx, image.Options{Flavour: image.Host, Kernel: kernel, Log: t.Logf})
			if err != nil {
				testkit.Missing(t, strings.ReplaceAll(err.Error(), "\n", "; "))
			}
			f(t, img)
		})
	}
}

// guest is a running guest with programs of this repository.
type guest struct {
	*qemu.Guest
	t   *testing.T
	env string // further environment variables of compiled tests, as a shell takes them
}

// program is a program that goes into the guest: at /bin and its name.
type program struct {
	name string
	// pkg is the package of the program, or of the tests that are compiled.
	pkg   string
	tests bool
	tags  string // build tags
}

var (
	heddle      = program{name: "heddle", pkg: "heddle/cmd/heddle"}
	smokeTests  = program{name: "smoke.test", pkg: "heddle/internal/test/smoke", tests: true}
	kernelTests = program{name: "kerneltest.test", pkg: "heddle/internal/test/kerneltest", tests: true}
)

// build compiles the program so that it runs without a C library.
func (p program) build(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), p.name)
	args := []string{"build"}
	if p.tests {
		args = []string{"test", "-c"}
	}
	cmd := exec.Command("go", append(args, "-tags", p.tags, "-ldflags", "-s -w", "-o", path, p.pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v: %s", p.pkg, err, out)
	}
	return path
}

// boot starts a guest on the image with the programs in it, which goes with the test. What o leaves open is filled in.
func boot(t *testing.T, img *image.Image, o qemu.Options, programs ...program) *guest {
	t.Helper()
	o.Image = img
	if o.Files == nil {
		o.Files = map[string]string{}
	}
	if o.Name == "" {
		o.Name = "kernel"
	}
	if o.NetNS == nil {
		o.NetNS = testkit.NS(t, "kernel")
	}
	if o.Tap == "" {
		o.Tap = "tap0"
	}
	o.Modules = append(o.Modules, "veth", "tun")
	for _, p := range programs {
		o.Files["/bin/"+p.name] = p.build(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), bootPatience)
	defer cancel()
	began := time.Now()
	// The guest lives as long as the test, not only while it boots.
	g, err := qemu.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := g.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("kernel %s booted in %s", g.Release(), time.Since(began).Round(100*time.Millisecond))
	return &guest{Guest: g, t: t}
}

// in is the guest for a test within the one that started it.
func (g *guest) in(t *testing.T) *guest { return &guest{g.Guest, t, g.env} }

// test runs a compiled test in the guest. Each of its tests is a test here; one that was skipped there is a failure.
func (g *guest) test(p program, args string) {
	g.t.Helper()
	began, used := time.Now(), g.cpu()
	// What it says goes to a file, which is there also when it is killed for being late.
	said := "/run/" + p.name
	r, err := g.runWhileItSpeaks(fmt.Sprintf("%s=1 HEDDLE_BINARY=/bin/heddle %s /bin/%s -test.v %s >%s 2>&1",
		testkit.RequireAll, g.env, p.name, args, said), said)
	output := g.read(g.t.Context(), "cat "+said)
	found := outcomes(output)
	for _, o := range found {
		g.t.Run(o.name, func(t *testing.T) {
			if o.verdict != "PASS" {
				t.Errorf("%s in the guest after %s s:\n%s", o.verdict, o.seconds, tail(o.said))
			}
		})
	}
	if err != nil || r.ExitCode != 0 || len(found) == 0 {
		// The kernel says there whether it killed the test for want of memory.
		g.t.Errorf("%s %s in the guest ended with %d, %v after %d tests:\n%s\nmemory and kernel log:\n%s", p.name, args,
			r.ExitCode, err,
			len(found), tail(output), g.read(g.t.Context(), "grep -E 'Mem(Total|Free|Available)' /proc/meminfo; "+
				"dmesg | tail -n 20"))
	}
	if testing.Verbose() {
		g.t.Logf("%s", tail(output))
	}
	g.t.Logf("%s: %d tests in %s, %s of CPU time", p.name, len(found), time.Since(began).Round(100*time.Millisecond),
		(g.cpu() - used).Round(100*time.Millisecond))
}

// runWhileItSpeaks runs a command that writes to a file in the guest, and ends it when the file has not grown for
// guestPatience.
func (g *guest) runWhileItSpeaks(command, file string) (qemu.Result, error) {
	g.t.Helper()
	ctx, end := context.WithCancelCause(g.t.Context())
	var watch sync.WaitGroup
	watch.Go(func() {
		size, grew := "", time.Now()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(guestPatience / 20):
			}
			if now := g.read(ctx, "cat "+file+" | wc -c"); now != size {
				size, grew = now, time.Now()
			} else if time.Since(grew) > guestPatience {
				end(fmt.Errorf("it has said nothing for %s", guestPatience))
			}
		}
	})
	r, err := g.Run(ctx, command)
	err = errors.Join(err, context.Cause(ctx))
	end(nil)
	watch.Wait()
	return r, err
}

// read returns what a short command in the guest prints; nothing when ctx ends.
func (g *guest) read(ctx context.Context, command string) string {
	ctx, cancel := context.WithTimeout(ctx, guestPatience)
	defer cancel()
	r, err := g.Run(ctx, command)
	if err != nil && !errors.Is(err, context.Canceled) {
		g.t.Error(err)
	}
	return r.Stdout
}

// cpu is the CPU time that the guest has used so far. It says more than the clock about what tests cost on a machine
// that others use.
func (g *guest) cpu() time.Duration {
	g.t.Helper()
	used, err := cputime.Process(g.Pid())
	if err != nil {
		g.t.Fatal(err)
	}
	return used
}

// tail is the end of a long text.
func tail(s string) string { return s[max(0, len(s)-8000):] }
