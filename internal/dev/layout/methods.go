package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
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
