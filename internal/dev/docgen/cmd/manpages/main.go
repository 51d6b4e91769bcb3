package main

import (
	"flag"
	"fmt"
	"os"

	"heddle/internal/dev/docgen"
)

func main() {
	date := flag.Int64("date", 0, "date of the pages, seconds since 1970")
	controller := flag.Bool("controller", false, "those of heddle-controller instead")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: manpages [-controller] [-date SECONDS] REPOSITORY DIRECTORY")
		os.Exit(2)
	}
	err := error(nil)
	if *controller {
		err = docgen.WriteControllerManual(flag.Arg(1), *date)
	} else {
		err = docgen.WriteManual(flag.Arg(0), flag.Arg(1), *date)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manpages:", err)
		os.Exit(1)
	}
}
