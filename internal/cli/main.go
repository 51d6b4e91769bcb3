package cli

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Main runs the program with the arguments of this process, until it ends or is interrupted, and returns its exit
// status. If it is called by the name of the CNI plugin, it is the plugin.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == CNIName {
		args = []string{"cni"}
	}
	return Run(ctx, FromOS(), args)
}
