package main

import (
	"os"

	"heddle/cmd/heddle/features"
	"heddle/internal/cli/tree"
)

// release is the version of the package that the program is part of. The linker sets it: -X main.release=VERSION.
var release string

func main() { os.Exit(tree.Main(release, features.All()...)) }
