// Heddle is a distributed virtual switch for Linux hypervisors: the agent, and the commands that talk to it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"heddle/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := cli.Run(ctx, cli.FromOS(), os.Args[1:])
	stop()
	os.Exit(status)
}
