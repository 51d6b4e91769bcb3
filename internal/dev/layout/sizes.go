package layout

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// Sizes are the measures of the product and the workshop, files that programs write left out.
type Sizes struct {
	Files, Lines map[string]int // of each package
	Functions    map[string]int // lines of each function, by "package.Function" or "package.Type.Function"
}

// Measure reads how large packages and functions are.
func Measure(packages []Package) (Sizes, error) {
	s := Sizes{map[string]int{}, map[string]int{}, map[string]int{}}
	for _, p := range packages {
		if room(p.Path) == "internal/test" {
			continue
		}
		for _, name := range p.Files {
			if err := s.add(p.Path, filepath.Join(p.Dir, name)); err != nil {
				return Sizes{}, fmt.Errorf("measure packages: %w", err)
			}
		}
	}
	return s, nil
}

func (s Sizes) add(pkg, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return err
	}
	s.Files[pkg]++
	s.Lines[pkg] += bytes.Count(text, []byte("\n"))
	for _, d := range file.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is {
			continue
		}
		name := []string{pkg}
		if f.Recv != nil {
			name = append(name, receiver(f.Recv.List[0].Type))
		}
		s.Functions[strings.Join(append(name, f.Name.Name), ".")] =
			fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1
	}
	return nil
}
