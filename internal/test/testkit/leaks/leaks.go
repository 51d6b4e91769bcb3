package leaks

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heddle/internal/test/testkit"
)

const (
	// patience is how long what is on its way out may take: the kernel frees programs and tables after a grace period,
	// and a connection ends when the other side's end is noticed.
	patience = 2 * time.Minute
	poll     = 20 * time.Millisecond
)

// Watch begins to watch a test. At the test's end, after everything that it registers from now on is cleaned up, what
// stays of the process and of the objects that are added to the result is an error that lists each. Tests that run at
// the same time are judged together, when the last of them ends: nobody can tell whose a descriptor is.
func Watch(t testing.TB) *Objects {
	t.Helper()
	o := &Objects{found: map[object]string{}}
	shared.watch(t, o)
	return o
}

// shared is the process that all its tests share.
var shared = &process{patience: patience}

// process is what the tests of a process have in common.
type process struct {
	patience time.Duration

	mu     sync.Mutex
	tests  []string // those watched since nobody was
	active int
	before map[string]string // what there was then
}

func (p *process) watch(t testing.TB, o *Objects) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active == 0 {
		p.tests, p.before = nil, own()
	}
	p.active++
	p.tests = append(p.tests, t.Name())
	t.Cleanup(func() {
		t.Helper()
		p.end(t)
		if len(await(p.patience, o.left)) == 0 || t.Failed() {
			return
		}
		if left := o.forgotten(); len(left) > 0 {
			testkit.Never(t)
			t.Errorf("%s leaves in the kernel:\n  %s", t.Name(), strings.Join(left, "\n  "))
		}
	})
}

// end judges the process when the last of the tests at the same time ends.
func (p *process) end(t testing.TB) {
	t.Helper()
	// A test that begins meanwhile waits: what it opens would count.
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active--
	if p.active > 0 || t.Failed() { // one that failed may have ended half way through
		return
	}
	left := await(p.patience, func() []string {
		now := own()
		maps.DeleteFunc(now, func(k, _ string) bool { _, known := p.before[k]; return known })
		return slices.Sorted(maps.Values(now))
	})
	if len(left) > 0 {
		testkit.Never(t)
		t.Errorf("%s leaves in the process:\n  %s", strings.Join(p.tests, ", "), strings.Join(left, "\n  "))
	}
}

// own is what the process has, by what tells each from any other, and in words.
func own() map[string]string {
	all := descriptors()
	maps.Copy(all, routines())
	return all
}

// await gives what is left once nothing is, or time is up.
func await(patience time.Duration, look func() []string) []string {
	for deadline := time.Now().Add(patience); ; time.Sleep(poll) {
		if left := look(); len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}
