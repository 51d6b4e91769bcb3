package cmd

import (
	"errors"
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

func TestNumbersOfMovesAreForTheExperimentOfMoves(t *testing.T) {
	for _, r := range []Run{{Moves: 3}, {Rate: 100}} {
		var fault *Fault
		if _, err := r.Experiment(t.Context(), "failover"); !errors.As(err, &fault) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	var fault *Fault
	if _, err := (Run{Moves: -3}).Experiment(t.Context(), "migration"); !errors.As(err, &fault) {
		t.Errorf("fewer than no moves: %v", err)
	}
}
