// Heddle is a distributed virtual switch for Linux hypervisors: the agent, and the commands that talk to it.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"heddle/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == cli.CNIName {
		args = []string{"cni"}
	}
	status := cli.Run(ctx, cli.FromOS(), args)
	stop()
	os.Exit(status)
}
