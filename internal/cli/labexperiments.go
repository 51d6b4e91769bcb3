package cli

import (
	"strings"

	"heddle/internal/lab/attack"
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/hostile"
	"heddle/internal/lab/live"
	"heddle/internal/lab/msgsize"
	"heddle/internal/lab/outage"
)

// experiments lists everything that "lab run" runs: those of rows and scenarios, then those with a program of their own.
func experiments() ([]labEntry, error) {
	var all []labEntry
	for _, name := range experiment.Names() {
		e, err := experiment.Find(name)
		if err != nil {
			return nil, err
		}
		all = append(all, labEntry{name, e.Title})
	}
	return append(all,
		labEntry{live.Name, live.Title}, labEntry{outage.Name, outage.Title}, labEntry{outage.TeamingName, outage.TeamingTitle},
		labEntry{hostile.Name, hostile.Title}, labEntry{attack.Name, attack.Title}, labEntry{msgsize.Name, msgsize.Title}), nil
}

// isExperiment is an error that names all there are when there is none of that name.
func isExperiment(name string) error {
	all, err := experiments()
	if err != nil {
		return err
	}
	names := make([]string, len(all))
	for i, e := range all {
		if names[i] = e.Name; e.Name == name {
			return nil
		}
	}
	return usagef("there is no experiment %q: there are %s", name, strings.Join(names, ", "))
}

// experimentTitle says what the experiment of a report shows; "" when there is none of that name.
func experimentTitle(reported string) string {
	name, _, _ := strings.Cut(reported, " ") // what follows says how it was run, as in "NAME (simulated)"
	all, err := experiments()
	if err != nil {
		return ""
	}
	for _, e := range all {
		if e.Name == name {
			return e.Title
		}
	}
	return ""
}
