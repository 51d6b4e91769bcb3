package instance

import (
	"strings"
	"testing"
)

func TestNamesOfAgents(t *testing.T) {
	for name, ok := range map[string]bool{"default": true, "host-1_a": true, "": false, "../etc": false, "a/b": false,
		"-x": false, ".": false, strings.Repeat("x", 64): false} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
