package main

import (
	"os"

	"heddle/internal/controller/cmd"
)

func main() { os.Exit(cmd.Main()) }
