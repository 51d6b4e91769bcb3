package flowexport_test

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"heddle/internal/cli"
)

// TestMain lets the test program be the agents of the lab and the ends of measurements: they are started as the running program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "agent" || os.Args[1] == "traffic") {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		status := cli.Run(ctx, cli.FromOS(), os.Args[1:])
		stop()
		os.Exit(status)
	}
	os.Exit(m.Run())
}
