package main

import (
	"os"

	"heddle/cmd/heddle-controller/features"
	"heddle/internal/controller/cmd"
)

// release is the version of the package that the program is part of. The linker sets it: -X main.release=VERSION.
var release string

func main() { os.Exit(cmd.Main(release, features.List())) }
