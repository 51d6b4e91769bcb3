package layout

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

// Package is what is read of one package. Tests are left out: they may look at anything.
type Package struct {
	Path    string // below the module
	Says    string // the first sentence of its documentation
	Dir     string
	Files   []string
	Imports []string // of this module, below it
	// every package that is not of this module and not of the language, also those reached through others
	Foreign []string
	Rule    *Rule // nil for none
}

// listed is the output of `go list -json` for a package.
type listed struct {
	ImportPath, Doc, Dir   string
	GoFiles, Imports, Deps []string
	Error                  *struct{ Err string }
}

// Read reads the packages of the module at root as they are built for Linux.
func Read(root string) ([]Package, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Dir,GoFiles,Imports,Deps,Error", "./...")
	cmd.Dir, cmd.Env = root, append(cmd.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, fmt.Errorf("list the packages: %w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	var all []Package
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		if l.Error != nil {
			return nil, fmt.Errorf("package %s: %s", l.ImportPath, l.Error.Err)
		}
		p := l.pkg()
		if p.Rule, err = declared(p.Dir); err != nil {
			return nil, fmt.Errorf("package %s: %w", l.ImportPath, err)
		}
		all = append(all, p)
	}
}

func (l *listed) pkg() Package {
	p := Package{Path: strings.TrimPrefix(l.ImportPath, module), Says: sentence(l.Doc), Dir: l.Dir, Files: l.GoFiles}
	for _, i := range l.Imports {
		if below, ours := strings.CutPrefix(i, module); ours {
			p.Imports = append(p.Imports, below)
		}
	}
	for _, d := range l.Deps {
		if strings.Contains(strings.Split(d, "/")[0], ".") {
			p.Foreign = append(p.Foreign, d)
		}
	}
	return p
}

// sentence is what the documentation says the package is: "Package spec is the file." gives "the file", and keeps other
// verbs.
func sentence(doc string) string {
	doc = strings.ReplaceAll(doc, "\n", " ")
	if s, _, cut := strings.Cut(doc, ". "); cut {
		doc = s
	}
	doc = strings.TrimSuffix(doc, ".")
	if words := strings.Fields(doc); len(words) > 2 && (words[0] == "Package" || words[0] == "Command") {
		doc = strings.Join(words[2:], " ")
	}
	return strings.TrimPrefix(doc, "is ")
}

// room is the folder below internal/ that a package is in, or the package itself.
func room(path string) string {
	parts := strings.Split(path, "/")
	if parts[0] != "internal" || len(parts) < 2 {
		return parts[0]
	}
	return strings.Join(parts[:2], "/")
}

// outside are the packages, or folders of packages, by which a program reaches the kernel or the network. A pure
// package reaches none.
func outside() []string {
	return []string{"github.com/cilium/ebpf", "github.com/vishvananda/netlink", "github.com/vishvananda/netns",
		"github.com/mdlayher/packet",
		"github.com/mdlayher/socket", "github.com/safchain/ethtool", "golang.org/x/sys/unix"}
}

// Faults are the sentences about what breaks the rules, in the order of the packages.
func Faults(packages []Package) (out []string) {
	rules := map[string]Rule{}
	for _, p := range packages {
		if p.Rule != nil {
			rules[p.Path] = *p.Rule
		}
	}
	for _, p := range packages {
		r, known := rules[p.Path]
		if !known {
			out = append(out, fmt.Sprintf("%s has no floor: its doc.go wants a line %s… below its comment", p.Path,
				directive))
			continue
		}
		out = append(out, p.upward(r, rules)...)
		out = append(out, p.strange()...)
		if r.Pure {
			out = append(out, p.impure()...)
		}
		if i := slices.Index(p.Imports, "internal/dataplane"); i >= 0 && p.Path == "internal/model" {
			out = append(out, "the model knows the dataplane: each has to find the other's mistakes")
		}
	}
	return out
}

// upward are the imports of p that neither go to a lower floor nor stay in the room.
func (p *Package) upward(r Rule, rules map[string]Rule) (out []string) {
	for _, i := range p.Imports {
		to, known := rules[i]
		if !known || room(i) == room(p.Path) && to.Floor <= r.Floor || to.Floor < r.Floor ||
			to.Floor == r.Floor && p.standsOn(i) {
			continue
		}
		out = append(out, fmt.Sprintf("%s (floor %d) imports %s (floor %d): imports go to a lower floor, or stay in "+
			"the room on their own or a lower floor",
			p.Path, r.Floor, i, to.Floor))
	}
	return out
}

func (p *Package) impure() (out []string) {
	for _, d := range p.Foreign {
		if slices.ContainsFunc(outside(), func(o string) bool { return d == o || strings.HasPrefix(d, o+"/") }) {
			out = append(out, fmt.Sprintf("%s is to be pure, and reaches %s", p.Path, d))
		}
	}
	return out
}

// Pure are the paths of the pure packages below the module.
func Pure(packages []Package) (paths []string) {
	for _, p := range packages {
		if p.Rule != nil && p.Rule.Pure {
			paths = append(paths, p.Path)
		}
	}
	return paths
}

// Table is every package by floors, from the top one down, in Markdown.
func Table(packages []Package) string {
	var b strings.Builder
	for f := Top; f >= 0; f-- {
		fmt.Fprintf(&b, "**Floor %d**: %s\n\n| package | what it is | knows |\n|---|---|---|\n", f, titles()[f])
		for _, p := range packages {
			if p.Rule == nil || p.Rule.Floor != f {
				continue
			}
			pure := ""
			if p.Rule.Pure {
				pure = "; pure"
			}
			fmt.Fprintf(&b, "| `%s` | %s%s | %s |\n", strings.TrimPrefix(p.Path, "internal/"),
				strings.ReplaceAll(p.Says, "|", `\|`), pure, p.knows())
		}
		b.WriteString("\n")
	}
	return b.String()
}

// knows are the rooms that a package imports from, and of its own room the packages.
func (p *Package) knows() string {
	var rooms []string
	for _, i := range p.Imports {
		name := strings.TrimPrefix(i, "internal/")
		if room(i) != room(p.Path) {
			name = strings.TrimPrefix(room(i), "internal/")
		}
		if !slices.Contains(rooms, name) {
			rooms = append(rooms, name)
		}
	}
	if len(rooms) == 0 {
		return "nothing"
	}
	slices.Sort(rooms)
	return strings.Join(rooms, ", ")
}
