package bench_test

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"heddle/internal/cli"
	"heddle/internal/lab/bench"
)

// TestMain lets the test binary stand in for the heddle program, so that agents and senders run from the code under test.
func TestMain(m *testing.M) {
	if os.Getenv(bench.AsProgram) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := cli.Run(ctx, cli.FromOS(), os.Args[1:])
	stop()
	os.Exit(status)
}
