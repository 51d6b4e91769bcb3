package quick

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// module is the module's path, with the slash that package paths have behind it.
const module = "heddle/"

// Read lists the packages of the module at root.
func Read(root string) (all []Package, err error) {
	out, err := run(root, "go", "list", "-e",
		"-json=ImportPath,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles", "./...")
	if err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(strings.NewReader(out)); ; {
		var l struct {
			ImportPath                                                    string
			Imports, TestImports, XTestImports, TestGoFiles, XTestGoFiles []string
		}
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		p := Package{Dir: strings.TrimPrefix(l.ImportPath, module), Tests: len(l.TestGoFiles)+len(l.XTestGoFiles) > 0}
		for _, i := range slices.Concat(l.Imports, l.TestImports, l.XTestImports) {
			if below, ours := strings.CutPrefix(i, module); ours {
				p.Imports = append(p.Imports, below)
			}
		}
		all = append(all, p)
	}
}

// Changed are the files that differ from a commit, committed since or not, and those that git does not know yet. An
// empty base is where the branch left its upstream, or the last commit where it has none.
func Changed(root, base string) ([]string, error) {
	if base == "" {
		base = "HEAD"
		if out, err := run(root, "git", "merge-base", "HEAD", "@{upstream}"); err == nil {
			base = strings.TrimSpace(out)
		}
	}
	differ, err := run(root, "git", "diff", "--name-only", base, "--")
	if err != nil {
		return nil, err
	}
	fresh, err := run(root, "git", "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	return strings.Fields(differ + fresh), nil
}

func run(root, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = root
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("%s %s: %w: %s", name, args[0], err, strings.TrimSpace(string(exit.Stderr)))
	}
	return string(out), err
}
