package event

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// A kind that is not listed cannot be asked for.
func TestEveryKindIsListed(t *testing.T) {
	source, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared []Kind
	for _, m := range regexp.MustCompile(`(?m)^\t\w+\s+Kind = "([a-z-]+)"`).FindAllSubmatch(source, -1) {
		declared = append(declared, Kind(m[1]))
	}
	if len(declared) < 20 || !slices.Equal(declared, Kinds()) {
		t.Errorf("declared are %v, listed are %v", declared, Kinds())
	}
}
