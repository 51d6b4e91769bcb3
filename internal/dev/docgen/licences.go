package docgen

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

const licencesPath = "docs/reference/licences.md"

const licencesIntro = `# Licences of what is built in

The programs hold code of these modules; those of etcd are in the controller only. A licence that is not among the permissive ones agreed in
` + "`internal/dev/docgen/licences.go`" + ` fails the tests.

| module | version | licence |
|---|---|---|
`

// agreed are the licences, by SPDX identifier, that a module which is built into the program may have.
func agreed() []string {
	return []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}
}

// covered is which share of a licence file, in per cent, must be words of known licences.
const covered = 75

// licencesPage lists the modules that the programs for Linux are built of, and their licences.
func licencesPage(root string) (string, error) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not "+
		".Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/...",
		"./internal/controller/...", "./internal/platform/...")
	cmd.Dir, cmd.Env = root, append(cmd.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("list the modules that are built in: %w", err)
	}
	lines := slices.DeleteFunc(strings.Split(string(out), "\n"), func(l string) bool { return l == "" })
	slices.Sort(lines)
	var b strings.Builder
	b.WriteString(generated("the modules that the programs are built of") + licencesIntro)
	for _, line := range slices.Compact(lines) {
		f := strings.Split(line, "\t")
		found, err := licences(f[2])
		if err != nil {
			return "", fmt.Errorf("module %s: %w", f[0], err)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f[0], f[1], strings.Join(found, ", "))
	}
	return b.String(), nil
}

// licences are those of the module in dir, as its licence files say.
func licences(dir string) ([]string, error) {
	var found []string
	for _, pattern := range []string{"LICEN[SC]E*", "COPYING*"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			ids, err := identify(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
			}
			found = append(found, ids...)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("it has no licence file")
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// identify returns the licences in a text, all of which must be accepted.
func identify(text []byte) (ids []string, err error) {
	cov := licensecheck.Scan(text)
	if cov.Percent < covered {
		return nil, fmt.Errorf("only %.0f %% of it are known licences: read it, and say here what it is", cov.Percent)
	}
	for _, m := range cov.Match {
		if m.IsURL {
			continue
		}
		if !slices.Contains(agreed(), m.ID) {
			return nil, fmt.Errorf("the licence %s is not agreed: take another module, or agree on it in "+
				"internal/dev/docgen/licences.go", m.ID)
		}
		ids = append(ids, m.ID)
	}
	return ids, nil
}
