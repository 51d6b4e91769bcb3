package main

import (
	"os"

	"heddle/internal/cli"
)

func main() { os.Exit(cli.Main()) }
