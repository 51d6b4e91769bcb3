package tree

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"heddle/internal/cli"
	"heddle/internal/cli/hooks"
)

// Main runs the program with the arguments of this process, until it ends or is interrupted, and returns its exit
// status. release is the version of its package, if any. If it is called by the name of the CNI plugin, it is the
// plugin. features are those that the program has.
func Main(release string, features ...Feature) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == hooks.CNIName {
		args = []string{"cni"}
	}
	d := cli.FromOS()
	d.Release = release
	return Run(ctx, d, args, features...)
}
