// Manpages writes the manual pages and the shell completions of the program below a directory laid out as /usr/share.
package main

import (
	"flag"
	"fmt"
	"os"

	"heddle/internal/dev/docgen"
)

func main() {
	date := flag.Int64("date", 0, "date of the pages, seconds since 1970")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: manpages [-date SECONDS] REPOSITORY DIRECTORY")
		os.Exit(2)
	}
	if err := docgen.WriteManual(flag.Arg(0), flag.Arg(1), *date); err != nil {
		fmt.Fprintln(os.Stderr, "manpages:", err)
		os.Exit(1)
	}
}
