package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"heddle/internal/test/testkit/budget"
)

// timeTests are those that compare times: they run alone at the end.
const timeTests = "^TestTime"

// runner runs test programs and gives their events to a report.
type runner struct {
	options
	self, convert string
	env           []string
	report        *report
	progress      *progress
	stopped       chan struct{} // closed once somebody asked for the end

	mu sync.Mutex // of the report
}

// run builds and runs everything, and says whether it was good.
func run(o options, asked <-chan os.Signal) (bool, error) {
	dir, err := os.MkdirTemp("", "runtests-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	pr := newProgress(os.Stdout, terminal(os.Stdout))
	defer pr.end()
	r := &runner{options: o, self: self, report: newReport(pr), progress: pr, stopped: make(chan struct{})}
	go func() {
		<-asked
		pr.say("interrupted: waiting for the tests that run to clean up\n")
		close(r.stopped)
	}()
	pkgs, left, err := list(o)
	if err != nil {
		return false, err
	}
	pr.say(fmt.Sprintf("building the tests of %d packages\n", len(pkgs)))
	programs, used, err := build(dir, self, pkgs, r.report, pr.building(len(pkgs)))
	if err != nil {
		return false, err
	}
	r.report.building = used
	r.report.left = left
	if r.convert, err = converter(); err != nil {
		return false, err
	}
	socket := filepath.Join(dir, "budget")
	l, err := net.Listen("unix", socket)
	if err != nil {
		return false, err
	}
	defer l.Close()
	go budget.NewServer(o.budget).Serve(l)
	r.env = append(os.Environ(), budget.SocketVar+"="+socket)
	inOrder(programs)
	return r.passes(programs)
}

// passes runs the programs, then alone what failed and what compares times, and closes the report.
func (r *runner) passes(programs []program) (bool, error) {
	old, err := readUnsteady(r.kept)
	if err != nil {
		return false, err
	}
	stop := r.progress.testing(len(programs))
	r.side(programs)
	r.repeat(programs)
	for _, p := range programs {
		if r.over() {
			break
		}
		if names := r.timed(p); len(names) > 0 {
			r.one(p, r.report, "^("+strings.Join(names, "|")+")$", r.skip)
		}
	}
	r.repeat(programs)
	stop()
	return r.close(old)
}

// side runs programs side by side.
func (r *runner) side(programs []program) {
	next := make(chan program)
	var all sync.WaitGroup
	for range r.programs {
		all.Go(func() {
			for p := range next {
				skip := timeTests
				if r.skip != "" {
					skip += "|" + r.skip
				}
				r.one(p, r.report, r.run, skip)
			}
		})
	}
	for _, p := range programs {
		select {
		case <-r.stopped: // no other one begins
		default:
			select {
			case <-r.stopped:
			case next <- p:
			}
		}
	}
	close(next)
	all.Wait()
}

func (r *runner) over() bool {
	select {
	case <-r.stopped:
		return true
	default:
		return false
	}
}

// one runs the tests of a program that match one pattern and not another, and gives their events to a report.
func (r *runner) one(p program, to *report, run, skip string) {
	// The child's Pdeathsig is tied to the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	line := []string{"-t", "-p", p.pkg, r.self, measureVerb, p.path, "-test.v=test2json", "-test.paniconexit0",
		"-test.timeout=0", fmt.Sprintf("-test.parallel=%d", r.parallel), fmt.Sprintf("-test.short=%v", !r.all),
		// As go test writes them: in two words the second would be an argument to a program that looks for some.
		"-test.run=" + run, "-test.skip=" + skip}
	cmd := exec.Command(r.convert, line...)
	cmd.Dir, cmd.Env = p.dir, append(slices.Clip(r.env), "PWD="+p.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	r.progress.starts(p.pkg)
	defer r.progress.ends(p.pkg)
	err := r.follow(cmd, to)
	r.mu.Lock()
	defer r.mu.Unlock()
	if cmd.ProcessState != nil {
		to.used += spent(cmd.ProcessState)
	}
	if to.pkgs[p.pkg] != nil { // its end was not told
		if err != nil {
			to.add(event{Action: "output", Package: p.pkg, Output: "runtests: " + err.Error() + "\n"})
		}
		to.add(event{Action: "fail", Package: p.pkg})
	}
}

// follow starts a command and reads its events until its end.
func (r *runner) follow(cmd *exec.Cmd, to *report) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := read(out, func(e event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		to.add(e)
		if to == r.report {
			r.progress.event(e)
		}
	}, func(line string) { r.progress.say(line) })
	return errors.Join(readErr, cmd.Wait())
}

// timed names the tests of a program that compare times, and that the command line asks for.
func (r *runner) timed(p program) []string {
	root, _, _ := strings.Cut(r.run, "/")
	asked, err := regexp.Compile(root)
	if err != nil {
		return nil // the test programs have said so
	}
	cmd := exec.Command(p.path, "-test.list", timeTests)
	cmd.Dir, cmd.Env = p.dir, r.env
	out, err := cmd.Output()
	if err != nil {
		return nil // it has a TestMain that fails, which the report says
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool {
		return !strings.HasPrefix(name, "Test") || !asked.MatchString(name)
	})
}

// lines passes every line of a stream on.
func lines(in io.Reader, pass func([]byte)) error {
	br := bufio.NewReader(in)
	for {
		line, err := br.ReadBytes('\n')
		if len(line) > 0 {
			pass(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what the tests say: %w", err)
		}
	}
}

// minutes shows a time as people say it.
func minutes(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
