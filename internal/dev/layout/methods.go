package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// generatedFiles end so: what a program wrote is not held to what people read.
const generatedFiles = "_bpfel.go"

// Methods counts the methods of every type of the product and the workshop, by "package.Type". Tests may have larger
// ones.
func Methods(packages []Package) (map[string]int, error) {
	count := map[string]int{}
	for _, p := range packages {
		if room(p.Path) == "internal/test" {
			continue
		}
		for _, name := range p.Files {
			if strings.HasSuffix(name, generatedFiles) {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil,
				parser.SkipObjectResolution)
			if err != nil {
				return nil, fmt.Errorf("count the methods of types: %w", err)
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
					count[p.Path+"."+receiver(f.Recv.List[0].Type)]++
				}
			}
		}
	}
	return count, nil
}

func receiver(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// tooLarge are the sentences about types of the product that have too many methods, and about caps that could be lower.
func tooLarge(count map[string]int, caps map[string]int) (out []string) {
	for name, n := range count {
		limit, capped := caps[name]
		switch {
		case capped && n <= mostMethods:
			out = append(out, fmt.Sprintf(
				"%s has %d methods: take it out of largeTypes in internal/dev/layout/caps.go", name, n))
		case capped && n > limit:
			out = append(out, fmt.Sprintf("%s has %d methods, and %d are agreed: find the part of it that has state "+
				"of its own", name, n, limit))
		case capped && n < limit:
			out = append(out, fmt.Sprintf("%s has %d methods by now: lower its number in "+
				"internal/dev/layout/caps.go, which is %d", name, n, limit))
		case !capped && n > mostMethods:
			out = append(out, fmt.Sprintf("%s has %d methods, more than %d: find the part of it that has state of "+
				"its own", name, n, mostMethods))
		}
	}
	for name := range caps {
		if _, there := count[name]; !there {
			out = append(out, name+" is in largeTypes in internal/dev/layout/caps.go, and has no methods: take it out")
		}
	}
	slices.Sort(out)
	return out
}
