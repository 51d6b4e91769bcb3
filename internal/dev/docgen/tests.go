package docgen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ring is what a test exercises.
type ring string

// The rings, from the fastest to the slowest.
const (
	pure       ring = "pure Go"    // no kernel, no root: the model, the configuration, the plan
	kernel     ring = "kernel"     // the kernel program on single frames
	namespaces ring = "namespaces" // real devices in network namespaces
)

// coveringTest is a test that names statements or decisions.
type coveringTest struct {
	name string
	file string // below the root, with slashes
	line int
	ring ring
	of   []string // "S14", "D8"
}

// covers matches a test's name: TestS14_UnknownUnicast, TestS14_S15_Limit, TestS3_D2_SeenMAC; a test that holds times
// against a bound is called TestTime_S14_UnknownUnicast.
var covers = regexp.MustCompile(`^Test(?:Time_)?((?:[SD]\d+_)+)`)

// numbersOf are the statements a test's name says it covers.
func numbersOf(name string) []string {
	m := covers.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(m[1], "_"), "_")
}

// findTests finds every covering test of the repository, in the order of directories, files and lines.
func findTests(root string) ([]coveringTest, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		if base := d.Name(); name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "tools") {
			return filepath.SkipDir
		}
		dirs = append(dirs, name)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []coveringTest
	for _, dir := range dirs {
		tests, err := testsIn(root, dir)
		if err != nil {
			return nil, err
		}
		all = append(all, tests...)
	}
	return all, nil
}

// testsIn finds the covering tests of one directory, whatever systems its files are for.
func testsIn(root, dir string) ([]coveringTest, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	fset := token.NewFileSet()
	funcs := map[string]*ast.FuncDecl{}
	var tests []coveringTest
	for _, name := range names {
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("look for tests: %w", err)
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			funcs[fn.Name.Name] = fn
			if of := numbersOf(fn.Name.Name); of != nil && fn.Recv == nil {
				tests = append(tests, coveringTest{name: fn.Name.Name, file: filepath.ToSlash(rel),
					line: fset.Position(fn.Pos()).Line, of: of})
			}
		}
	}
	for i := range tests {
		tests[i].ring = ringOf(path.Dir(tests[i].file), funcs, tests[i].name)
	}
	slices.SortFunc(tests, func(a, b coveringTest) int {
		if c := strings.Compare(a.file, b.file); c != 0 {
			return c
		}
		return a.line - b.line
	})
	return tests, nil
}

// ringOf tells a test's ring from what it reaches in its package's test files: one that makes namespaces is a namespace
// test, one that needs root without them loads the kernel program; of the rest, those of packages that only ever drive
// the kernel program are kernel tests too.
func ringOf(pkg string, funcs map[string]*ast.FuncDecl, test string) ring {
	words := reach(funcs, test)
	switch {
	case words["testkit.NS"], words["netns.New"]:
		return namespaces
	case words["testkit.Root"]:
		return kernel
	}
	switch pkg {
	case "internal/dataplane", "internal/test/difftest":
		return kernel
	case "internal/lab", "internal/agent":
		if words["testkit.Tool"] {
			return namespaces
		}
	}
	return pure
}

// reach is every qualified name ("testkit.NS") that a function uses, by itself or through functions of the same test
// files.
func reach(funcs map[string]*ast.FuncDecl, start string) map[string]bool {
	words, seen := map[string]bool{}, map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		fn := funcs[name]
		if fn == nil || seen[name] {
			return
		}
		seen[name] = true
		ast.Inspect(fn, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.SelectorExpr:
				if id, ok := x.X.(*ast.Ident); ok {
					words[id.Name+"."+x.Sel.Name] = true
				}
				visit(x.Sel.Name)
			case *ast.Ident:
				visit(x.Name)
			}
			return true
		})
	}
	visit(start)
	return words
}
