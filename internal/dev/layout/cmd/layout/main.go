// Command layout prints the pure packages, a path a line, as go build takes them.
package main

import (
	"fmt"

	"heddle/internal/dev/layout"
)

func main() {
	for _, path := range layout.Pure() {
		fmt.Println("./" + path)
	}
}
