package layout

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Touches counts, by the packages' paths, how often methods of one owner read or write a private field of another owner
// of their package. An owner is a struct that is changed by its methods: one with methods of its pointer. With each
// touch two owners have to know when that piece of state may be read and written.
func Touches(root string, packages []Package) (map[string]int, error) {
	exports, err := exportsOf(root, packages)
	if err != nil {
		return nil, fmt.Errorf("count the touches of private fields: %w", err)
	}
	count := map[string]int{}
	for _, p := range packages {
		if count[p.Path], err = touchesOf(p, exports); err != nil {
			return nil, fmt.Errorf("count the touches of private fields in %s: %w", p.Path, err)
		}
	}
	return count, nil
}

func touchesOf(p Package, exports map[string]string) (n int, err error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.Files {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return 0, err
		}
		files = append(files, file)
	}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Defs: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	pkg, err := conf.Check(module+p.Path, fset, files, info)
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv != nil {
				n += touchesIn(f, pkg, info)
			}
		}
	}
	return n, nil
}

// exportsOf are the files with what packages export, of all that some packages import, by their paths.
func exportsOf(root string, packages []Package) (map[string]string, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, p := range packages {
		args = append(args, "./"+p.Path)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = root, append(cmd.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list what packages export: %w", err)
	}
	exports := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		path, file, _ := strings.Cut(lines.Text(), "\t")
		exports[path] = file
	}
	return exports, nil
}

// touchesIn counts the touches in a method.
func touchesIn(f *ast.FuncDecl, pkg *types.Package, info *types.Info) (n int) {
	method, _ := info.Defs[f.Name].(*types.Func)
	if method == nil {
		return 0
	}
	own := named(method.Signature().Recv().Type())
	if own == nil || !owner(own) {
		return 0
	}
	ast.Inspect(f, func(node ast.Node) bool {
		s, is := node.(*ast.SelectorExpr)
		if !is {
			return true
		}
		chosen := info.Selections[s]
		if chosen == nil || chosen.Kind() != types.FieldVal || chosen.Obj().Exported() || chosen.Obj().Pkg() != pkg {
			return true
		}
		if of := holderOf(chosen); of != nil && of.Obj() != own.Obj() && of.Obj().Pkg() == pkg && owner(of) {
			n++
		}
		return true
	})
	return n
}

// holderOf is the type that declares the field that was chosen, which may be embedded in the one that was named.
func holderOf(s *types.Selection) *types.Named {
	t := s.Recv()
	path := s.Index()
	for _, i := range path[:len(path)-1] {
		under, is := named(t).Underlying().(*types.Struct)
		if !is {
			return nil
		}
		t = under.Field(i).Type()
	}
	return named(t)
}

// named is the type itself, or what a pointer to it points to; nil for others.
func named(t types.Type) *types.Named {
	if p, is := types.Unalias(t).(*types.Pointer); is {
		t = p.Elem()
	}
	n, _ := types.Unalias(t).(*types.Named)
	return n
}

// owner reports whether a type is a struct with methods of its pointer.
func owner(n *types.Named) bool {
	if _, is := n.Underlying().(*types.Struct); !is {
		return false
	}
	for m := range n.Methods() {
		if _, is := m.Signature().Recv().Type().(*types.Pointer); is {
			return true
		}
	}
	return false
}
