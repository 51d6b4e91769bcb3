package asheddle

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	"heddle/cmd/heddle/features"
	"heddle/internal/cli"
	"heddle/internal/cli/tree"
)

// Verbs is the body of a TestMain. It runs the tests, unless the program was started with one of these commands: then
// it runs that.
func Verbs(m *testing.M, verbs ...string) {
	either(m, len(os.Args) > 1 && slices.Contains(verbs, os.Args[1]))
}

// Env is the body of a TestMain. It runs the tests, unless this environment variable is set: then it runs heddle's
// command line.
func Env(m *testing.M, name string) { either(m, os.Getenv(name) != "") }

func either(m *testing.M, heddle bool) {
	if !heddle {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := tree.Run(ctx, cli.FromOS(), os.Args[1:], features.All()...)
	stop()
	os.Exit(status)
}
