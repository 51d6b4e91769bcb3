package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// below are the folders of the kernel programs that files of each folder may include. capture and meter are taps beside
// the stages, which call them.
var below = map[string][]string{
	"core":    {"core"},
	"capture": {"core", "capture"},
	"meter":   {"core", "meter"},
	"stage":   {"core", "capture", "meter", "stage"},
	"overlay": {"core", "capture", "overlay"},
}

// The C has floors as the Go has: what is in core serves every stage, and knows none.
func TestHeadersIncludeWhatIsBelowThem(t *testing.T) {
	includes := regexp.MustCompile(`(?m)^#include "([^/"]+)/`)
	files, err := filepath.Glob("../../../bpf/*/*.h")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d headers, %v", len(files), err)
	}
	for _, name := range files {
		folder := filepath.Base(filepath.Dir(name))
		t.Run(folder+"/"+filepath.Base(name), func(t *testing.T) {
			may, known := below[folder]
			if !known {
				t.Fatalf("bpf/%s is not in this test: say what its files may include", folder)
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range includes.FindAllStringSubmatch(string(text), -1) {
				if !slices.Contains(may, m[1]) {
					t.Errorf("it includes a file of bpf/%s, and may include those of %s", m[1], strings.Join(may, ", "))
				}
			}
		})
	}
}
