package cmd

import (
	"slices"
	"testing"
)

func TestEveryExperimentHasATitle(t *testing.T) {
	all, err := Experiments()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
		if e.Title == "" || title(e.Name) != e.Title || title(e.Name+" (simulated)") != e.Title {
			t.Errorf("%q has the title %q", e.Name, e.Title)
		}
	}
	if !slices.Equal(names, ExperimentNames()) {
		t.Errorf("%v are listed, and %v are named", names, ExperimentNames())
	}
}
