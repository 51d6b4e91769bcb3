package main

import (
	"fmt"
	"os"

	"heddle/internal/dev/docgen"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: docgen ROOT")
		os.Exit(2)
	}
	if err := docgen.Write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}
