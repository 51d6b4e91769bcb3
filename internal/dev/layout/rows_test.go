package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Named rows of a table run as sub-tests under their names: then one can be run alone, and a failing one hides no
// other.
func TestNamedRowsAreSubTests(t *testing.T) {
	set := token.NewFileSet()
	tables := 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, loop := range namedTables(file) {
			tables++
			if !callsRun(loop.Body) {
				t.Errorf("%s: rows with names are no sub-tests: t.Run(c.name, …)", set.Position(loop.Pos()))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if tables < 30 {
		t.Errorf("only %d tables are found: this test is void", tables)
	}
}

// namedTables are the loops of tests over a literal whose rows begin with their name.
func namedTables(file *ast.File) (loops []*ast.RangeStmt) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || !strings.HasPrefix(f.Name.Name, "Test") {
			continue
		}
		for _, s := range f.Body.List {
			loop, ok := s.(*ast.RangeStmt)
			if !ok {
				continue
			}
			if table, ok := loop.X.(*ast.CompositeLit); ok && len(table.Elts) > 1 && hasNames(table) {
				loops = append(loops, loop)
			}
		}
	}
	return loops
}

func hasNames(table *ast.CompositeLit) bool {
	list, ok := table.Type.(*ast.ArrayType)
	if !ok {
		return false
	}
	row, ok := list.Elt.(*ast.StructType)
	if !ok || len(row.Fields.List) == 0 || len(row.Fields.List[0].Names) == 0 {
		return false
	}
	first := row.Fields.List[0]
	kind, ok := first.Type.(*ast.Ident)
	return ok && kind.Name == "string" && slices.Contains([]string{"name", "what", "why"}, first.Names[0].Name)
}

// callsRun says whether a sub-test is run within.
func callsRun(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Run" {
				found = true
			}
		}
		return !found
	})
	return found
}
