package agent

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"testing"
)

// Each owner knows those before it and none of those after it, so that the reach of a change to one of them is plain.
func TestOwnersKnowOnlyThoseBeforeThem(t *testing.T) {
	place := map[reflect.Type]int{}
	all := reflect.TypeFor[owners]()
	for i := range all.NumField() {
		place[all.Field(i).Type] = i + 1
	}
	links := 0
	for i := range all.NumField() {
		owner := all.Field(i).Type.Elem()
		for k := range owner.NumField() {
			f := owner.Field(k)
			if at := place[f.Type]; at > 0 {
				if links++; at > i {
					t.Errorf("%s knows %s, which is not before it in owners", owner.Name(), f.Name)
				}
			}
			if f.Type == reflect.TypeFor[*Agent]() {
				t.Errorf("%s knows the whole agent by %s", owner.Name(), f.Name)
			}
		}
	}
	if links < all.NumField() {
		t.Errorf("%d links between %d owners: what this test looks at has changed", links, all.NumField())
	}
}

// lateBound is how many functions owners are given of owners after them. The number only falls: what two owners do to
// each other becomes a value that the core publishes, or one that a part wants.
const lateBound = 3

func TestLateBoundFunctionsOnlyBecomeFewer(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "owners.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		if a, is := node.(*ast.AssignStmt); is {
			for _, to := range a.Lhs {
				field, is := to.(*ast.SelectorExpr)
				if is {
					_, is = field.X.(*ast.SelectorExpr) // of an owner, and not an owner itself
				}
				if is {
					n++
				}
			}
		}
		return true
	})
	if n != lateBound {
		t.Errorf("owners.go binds %d functions late, and %d are agreed", n, lateBound)
	}
}
