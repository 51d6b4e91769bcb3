package spec

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var update = flag.Bool("update", false, "write the faults of testdata/bad as they are now")

// cases are the files of a directory of testdata.
func cases(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", dir, err)
	}
	return files
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// ignoreSource compares configurations by what they say, not by where they say it.
var ignoreSource = cmpopts.IgnoreUnexported(Config{})

func TestParse_GoodFilesKeepTheirMeaningWhenFormatted(t *testing.T) {
	for _, file := range cases(t, "good") {
		cfg, err := Load(file)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		text, err := Format(cfg)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("formatted", text)
		if err != nil {
			t.Errorf("%s: canonical form:\n%s\n%v", file, text, err)
			continue
		}
		if diff := cmp.Diff(cfg, again, ignoreSource, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: canonical form reads differently:\n%s", file, diff)
		}
		second, err := Format(again)
		if err != nil || string(second) != string(text) {
			t.Errorf("%s: the canonical form is not stable: %v\n%s", file, err, cmp.Diff(string(text), string(second)))
		}
	}
}

func TestParse_BadFilesGiveEveryFaultInTheOrderOfTheFile(t *testing.T) {
	for _, file := range cases(t, "bad") {
		cfg, err := Parse(filepath.Base(file), read(t, file))
		var faults Faults
		if !errors.As(err, &faults) || cfg != nil {
			t.Errorf("%s: got config %v and error %T %v, want Faults alone", file, cfg != nil, err, err)
			continue
		}
		got := faults.Error() + "\n"
		if strings.Count(got, "\n") != len(faults) {
			t.Errorf("%s: %d faults on %d lines", file, len(faults), strings.Count(got, "\n"))
		}
		golden := strings.TrimSuffix(file, ".yaml") + ".txt"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(strings.Split(string(read(t, golden)), "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}
