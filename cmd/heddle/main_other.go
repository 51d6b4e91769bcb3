//go:build !linux

// Heddle is a distributed virtual switch for Linux hypervisors; on other systems the program simulates.
package main

import (
	"os"
	"runtime"

	"heddle/internal/cli/portable"
)

func main() { os.Exit(portable.Run(runtime.GOOS, os.Args[1:], os.Stdout, os.Stderr)) }
