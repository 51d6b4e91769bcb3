package main

import (
	"fmt"
	"os"

	"heddle/internal/dev/layout"
)

func main() {
	packages, err := layout.Read(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "layout:", err)
		os.Exit(1)
	}
	for _, path := range layout.Pure(packages) {
		fmt.Println("./" + path)
	}
}
