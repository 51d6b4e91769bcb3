package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// options are the command line.
type options struct {
	all       bool   // and not only what `make test` runs
	run, skip string // patterns of tests, as `go test` takes them
	parallel  int    // tests of a program at once
	programs  int    // test programs at once
	budget    int    // what further work tests may do at once, in CPUs
	kept      string // path of the kept list of unsteady tests
	packages  []string
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("runtests", flag.ContinueOnError)
	f.BoolVar(&o.all, "all", false, "run long tests and packages as well, as make test-all does")
	f.StringVar(&o.run, "run", "", "run only tests that match this `pattern`")
	f.StringVar(&o.skip, "skip", "", "leave out tests that match this `pattern`")
	f.IntVar(&o.parallel, "parallel", 3, "run so many tests of one program at once")
	f.IntVar(&o.programs, "programs", 0, "run so many test programs at once (default 3, with -all 4)")
	f.IntVar(&o.budget, "budget", 0,
		"let tests with agents, guests and benches take so many CPUs together (default 3, with -all 6)")
	f.StringVar(&o.kept, "kept", "bin/unsteady.jsonl", "keep the list of unsteady tests in this `file`")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	budget, programs := 3, 3
	if o.all { // what takes long waits more: guests boot, and the clocks of clusters run out
		budget, programs = 6, 4
	}
	o.budget, o.programs = cmp.Or(o.budget, budget), cmp.Or(o.programs, programs)
	o.packages = f.Args()
	if len(o.packages) == 0 {
		o.packages = []string{everything}
	}
	return o, nil
}

func main() {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case keepVerb:
			os.Exit(keep(os.Args[2]))
		case measureVerb:
			os.Exit(measureAlone(os.Args[2:]))
		}
	}
	o, err := parse(os.Args[1:])
	if err != nil {
		os.Exit(2)
	}
	// An interrupt from the terminal reaches the tests too: they clean up, and this program reads on until they have
	// ended. (Caught and not ignored: what is ignored would stay so in the children.)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	good, err := run(o, asked)
	if err != nil {
		fmt.Fprintln(os.Stderr, "runtests:", err)
	}
	if err != nil || !good {
		os.Exit(1)
	}
}

// terminal says whether a file is one.
func terminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
