// Heddle is a distributed virtual switch for Linux hypervisors: the agent, and the commands that talk to it.
package main

import (
	"os"

	"heddle/internal/cli"
)

func main() { os.Exit(cli.Main()) }
