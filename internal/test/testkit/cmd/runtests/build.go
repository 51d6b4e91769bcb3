package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// keepVerb is the argument by which this program, in place of a test program that go test has just built, keeps it.
const keepVerb = "keep"

// keepVar is the environment variable with the directory that the built test programs are kept in.
const keepVar = "RUNTESTS_KEEP"

// program is a built test program.
type program struct {
	pkg  string // import path
	dir  string // of the package
	path string
}

// kept is what keep notes of a test program.
type kept struct{ Dir, Path string }

// keep notes a test program in the directory of the run and links it there: go test removes its own. It gives the exit
// status.
func keep(binary string) int {
	err := func() error {
		dir, err := os.Getwd() // that of the package
		if err != nil {
			return err
		}
		place, err := os.MkdirTemp(os.Getenv(keepVar), "program-")
		if err != nil {
			return err
		}
		to := filepath.Join(place, filepath.Base(binary))
		if err := os.Link(binary, to); err != nil {
			return err
		}
		note, err := json.Marshal(kept{dir, to})
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(place, "note.json"), note, 0o600)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "runtests: keep the test program:", err)
		return 1
	}
	return 0
}

// list gives the import paths of the packages with tests, without those that only -all runs where a pattern, and not
// their name, asks for them.
func list(o options) (pkgs []string, left []string, err error) {
	args := append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"}, o.packages...)
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w", err)
	}
	named := func(path string) bool { // by itself
		return slices.ContainsFunc(o.packages, func(p string) bool {
			return !strings.Contains(p, "...") && ofPackage(path, p)
		})
	}
	for path := range strings.FieldsSeq(string(out)) {
		if !o.all && among(longPackages, path) && !named(path) {
			left = append(left, path)
			continue
		}
		pkgs = append(pkgs, path)
	}
	return pkgs, left, nil
}

// among says whether a list has a package.
func among(list []string, path string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return ofPackage(path, p) })
}

// ofPackage says whether an import path, or a directory, is that of a package that is written "./internal/x".
func ofPackage(path, written string) bool {
	return strings.HasSuffix(path, strings.TrimPrefix(strings.TrimSuffix(written, "/"), "."))
}

// build builds the test programs of packages into a directory. What was not built is reported as failed.
func build(dir, self string, pkgs []string, r *report, p *progress) ([]program, time.Duration, error) {
	args := append([]string{"test", "-json", "-run", "^$", "-count=1", "-exec", self + " " + keepVerb}, pkgs...)
	cmd := exec.Command("go", args...)
	// GOTMPDIR: a link needs the same file system.
	cmd.Env = append(os.Environ(), keepVar+"="+dir, "GOTMPDIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	if err := cmd.Start(); err != nil {
		return nil, 0, fmt.Errorf("start go test: %w", err)
	}
	failed := 0
	readErr := read(out, func(e event) {
		switch {
		case e.Action == "build-output", e.Action == "fail" && e.Test == "":
			r.add(e)
			if e.Action == "fail" {
				failed++
			}
		case e.Action == "output" && e.Test == "" && strings.HasPrefix(e.Output, "runtests: "):
			r.add(e)
		}
		if e.Test == "" && (e.Action == "pass" || e.Action == "fail") {
			p.built()
		}
	}, r.print)
	err = cmd.Wait()
	used := spent(cmd.ProcessState)
	if errors.As(err, new(*exec.ExitError)) && failed > 0 {
		err = nil // the report has it
	}
	if err := errors.Join(readErr, err); err != nil {
		return nil, used, fmt.Errorf("build the tests: %w", err)
	}
	programs, err := programsIn(dir, pkgs)
	return programs, used, err
}

// programsIn reads what keep noted.
func programsIn(dir string, pkgs []string) ([]program, error) {
	notes, err := filepath.Glob(filepath.Join(dir, "program-*", "note.json"))
	if err != nil {
		return nil, err
	}
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	var list []program
	for _, path := range notes {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var k kept
		if err := json.Unmarshal(text, &k); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		rel, err := filepath.Rel(root, k.Dir)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(pkgs, func(pkg string) bool { return ofPackage(pkg, "./"+filepath.ToSlash(rel)) })
		if i < 0 {
			return nil, fmt.Errorf("a test program of %s, which nobody asked for", k.Dir)
		}
		list = append(list, program{pkgs[i], k.Dir, k.Path})
	}
	return list, nil
}

// moduleRoot is the directory of the module.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	return strings.TrimSpace(string(out)), err
}

// converter is the path of Go's program that makes events of what a test program prints.
func converter() (string, error) {
	out, err := exec.Command("go", "tool", "-n", "test2json").Output()
	if err != nil {
		return "", fmt.Errorf("go tool test2json: %w", err)
	}
	return string(bytes.TrimSpace(out)), nil
}

// read passes every event of a `go test -json` stream on, and every line that is none.
func read(in io.Reader, add func(event), other func(string)) error {
	return lines(in, func(line []byte) {
		var e event
		if json.Unmarshal(line, &e) == nil && e.Action != "" {
			add(e)
		} else {
			other(string(line))
		}
	})
}
