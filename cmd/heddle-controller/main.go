// Heddle-controller keeps the definition of distributed switches for many hosts, and hands each host its part.
package main

import (
	"os"

	"heddle/internal/controller/cmd"
)

func main() { os.Exit(cmd.Main()) }
