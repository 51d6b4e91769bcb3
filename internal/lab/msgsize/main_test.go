package msgsize_test

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	"heddle/internal/cli"
)

// TestMain lets the test program be the agents, senders and receivers of the labs that tests build: a lab starts the running
// program again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"agent", "lab", "traffic"}, os.Args[1]) {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		status := cli.Run(ctx, cli.FromOS(), os.Args[1:])
		stop()
		os.Exit(status)
	}
	os.Exit(m.Run())
}
