package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// mostUnsteady is how many tests of a run may be unsteady: more say that something else is wrong.
	mostUnsteady = 3
	// mostRepeated bounds what is repeated, since a run with more failures is not saved by that.
	mostRepeated = 12
)

// unsteady is a test that failed, and passed when it was repeated alone: a line of the kept list.
type unsteady struct {
	Date    time.Time `json:"date"`
	Package string    `json:"package"`
	Test    string    `json:"test"` // empty: the package as a whole
	Seconds float64   `json:"seconds"`
	Load    float64   `json:"load"` // of the machine, when it failed
	Output  []string  `json:"output"`
}

// readUnsteady reads the kept list. One that is not there is empty.
func readUnsteady(path string) ([]unsteady, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the kept list of unsteady tests: %w", err)
	}
	defer f.Close()
	var list []unsteady
	dec := json.NewDecoder(f)
	for dec.More() {
		var u unsteady
		if err := dec.Decode(&u); err != nil {
			return nil, fmt.Errorf("the kept list of unsteady tests, %s: %w", path, err)
		}
		list = append(list, u)
	}
	return list, nil
}

// keepUnsteady adds to the kept list.
func keepUnsteady(path string, list []unsteady) error {
	if len(list) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("keep the list of unsteady tests: %w", err)
	}
	var text strings.Builder
	for _, u := range list {
		line, err := json.Marshal(u)
		if err != nil {
			return err
		}
		text.Write(append(line, '\n'))
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("keep the list of unsteady tests: %w", err)
	}
	_, err = f.WriteString(text.String())
	return errors.Join(err, f.Close())
}

// known says whether the kept list has a test.
func known(old []unsteady, u unsteady) bool {
	return slices.ContainsFunc(old, func(o unsteady) bool { return o.Package == u.Package && o.Test == u.Test })
}

// repeat runs each test that failed and was not repeated yet once more, alone.
func (r *runner) repeat(programs []program) {
	for _, g := range r.report.groups() {
		if g.repeated || r.over() {
			continue
		}
		g.repeated = true
		i := slices.IndexFunc(programs, func(p program) bool { return p.pkg == g.pkg })
		if i < 0 || g.never || r.report.again >= mostRepeated {
			continue
		}
		run, skip := "^"+regexp.QuoteMeta(g.test)+"$", ""
		if g.test == "" {
			run, skip = r.run, timeTests
		}
		r.progress.say(fmt.Sprintf("once more, alone: %s %s\n", g.pkg, g.test))
		again := newReport(r.progress)
		r.one(programs[i], again, run, skip)
		r.report.used += again.used
		r.report.again++
		if again.counts["fail"] > 0 || again.counts["pass"]+again.counts["skip"] == 0 {
			continue
		}
		r.report.forgive(g, again)
	}
}

// close prints the end of the report, keeps the list of unsteady tests and says whether the run was good.
func (r *runner) close(old []unsteady) (bool, error) {
	rep := r.report
	again := 0
	for _, u := range rep.unsteady {
		if known(old, u) {
			again++
		}
	}
	if again > 0 {
		rep.say("%d of the unsteady tests are in the kept list already (%s): find out why, and fix them",
			again, r.kept)
	}
	if len(rep.unsteady) > mostUnsteady {
		rep.say("%d tests are unsteady, and a run may have %d", len(rep.unsteady), mostUnsteady)
		again = max(again, 1)
	}
	rep.counts["fail"] += again
	rep.counts["pass"] -= min(again, rep.counts["pass"])
	rep.took, rep.load = r.progress.took(), r.progress.load()
	good := rep.close()
	if r.over() {
		rep.print("the run was interrupted\n")
		good = false
	}
	return good, keepUnsteady(r.kept, rep.unsteady)
}
