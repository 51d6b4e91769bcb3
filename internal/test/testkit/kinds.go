package testkit

import (
	"strings"
	"sync"
	"testing"

	"heddle/internal/test/testkit/budget"
)

// LongMark begins the reason for which `make test` leaves a test to `make test-all`; the runner counts those apart.
const LongMark = "left to make test-all: "

// Long leaves a test out of `make test`, which takes ten minutes in all; `make test-all` and a test that is run by hand
// have it. why says what makes it long, or which shorter test has the same feature.
func Long(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip(LongMark + why)
	}
}

// NeverAttr is the attribute of a test that the runner does not repeat.
const NeverAttr = "heddle-never"

// Never says that the test proves that something never happens: one failure in a thousand runs is a fault, and the
// runner does not repeat the test. It must claim only what holds at every load.
func Never(t testing.TB) {
	t.Helper()
	root, _, _ := strings.Cut(t.Name(), "/")
	t.Attr(NeverAttr, root)
}

// beside are the tests of this process that run beside others.
var beside sync.Map

// Beside has a test run at the same time as others of its program, as t.Parallel does; unlike that it may be called
// again. The parts of a test stay in their order. A test that has a share of the run's budget by then goes on alone:
// it would keep the share while it waits for the others, and those would wait for it.
func Beside(t *testing.T) {
	t.Helper()
	root, _, _ := strings.Cut(t.Name(), "/")
	if _, has := weighed.Load(root); has {
		return
	}
	if _, is := beside.LoadOrStore(t.Name(), true); is || strings.Contains(t.Name(), "/") {
		return
	}
	t.Cleanup(func() { beside.Delete(t.Name()) }) // a test may run several times
	t.Parallel()
}

// weighed are the tests of this process that have a share of the run's budget.
var weighed sync.Map

// Weigh waits until the run has room for a test that keeps so many CPUs busy beside the test program itself: 1 for an
// agent or two under traffic, 2 for a guest or a few hosts with controllers, 3 for a bench or a lab, 6 to be alone. A
// test has one weight, that of its first call: one that waited for more while it holds some might wait for ever.
func Weigh(t testing.TB, weight int) {
	t.Helper()
	root, _, _ := strings.Cut(t.Name(), "/")
	if _, has := weighed.LoadOrStore(root, true); has {
		return
	}
	release, err := budget.Take(weight)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		weighed.Delete(root)
		release()
	})
}
