package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A template can call any exported method of any type by its name. So the linker keeps all of them in a program that
// has package text/template: the agent was 4 MB larger with it, in memory too. Cobra's functions that take a template
// bring it in.
func TestTheProgramMakesNoTextFromTemplates(t *testing.T) {
	for _, root := range []string{"../../../cmd", "../.."} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			tool := strings.Contains(path, "/dev/") || strings.Contains(path, "/test/") ||
				strings.HasSuffix(path, "_test.go")
			if err != nil || d.IsDir() || tool || filepath.Ext(path) != ".go" {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			for _, use := range templates(file) {
				t.Errorf("%s: uses %s", path, use)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// templates are the uses of text/template in a file, also those through cobra.
func templates(file *ast.File) (uses []string) {
	for _, i := range file.Imports {
		if path, _ := strconv.Unquote(i.Path.Value); path == "text/template" || path == "html/template" {
			uses = append(uses, path)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if ok && strings.HasPrefix(s.Sel.Name, "Set") && strings.HasSuffix(s.Sel.Name, "Template") {
			uses = append(uses, s.Sel.Name)
		}
		return true
	})
	return uses
}

func TestTemplatesAreFound(t *testing.T) {
	const src = "package x\nimport \"html/template\"\nfunc f() { c.SetUsageTemplate(`x`); c.SetUsageFunc(nil) }"
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(templates(file), " "); got != "html/template SetUsageTemplate" {
		t.Errorf("found %q", got)
	}
}
