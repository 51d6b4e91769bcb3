package spec

import (
	"os"
	"path/filepath"
	"testing"
)

func TestParse_GoodFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(filepath.Base(file), data); err != nil {
			t.Errorf("%v", err)
		}
	}
}
