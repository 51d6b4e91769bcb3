package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// patient is a test that ends its patience by a comparison of times, a minute at least and many times what it waits
// for, and why it is no test of times.
type patient struct{ file, test, why string }

func patients() []patient {
	return []patient{
		{"internal/flow/export/stream_test.go", "TestTCPCollectorThatDoesNotRead",
			"a minute for what takes a second, if the collector that does not read delays nobody"},
		{"internal/flow/export/stream_test.go", "TestTCPNobodyListens",
			"a minute for what takes no time, where an exporter that waits would take two"},
		{"internal/test/fleet/looking_test.go", "TestLookingAtTheFleet_DriftHasADate",
			"a date of this hour for what was changed a moment ago, and not of another day"},
	}
}

// A test fails because of a slow machine only if it is called TestTime…: those run alone. No other one fails because
// something took longer than a bound; it waits for a condition until its patience ends, or has a simulated clock
// (testing/synctest).
func TestOnlyTestsOfTimesHaveBoundsOfTime(t *testing.T) {
	found := map[patient]bool{}
	files := 0
	eachFile(t, ".go", func(path, text string) {
		rel := strings.TrimPrefix(path, "../../../")
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range wronglyNamed(file) {
			t.Errorf("%s: %s runs alone as a test of times, which are called TestTime_…", rel, name)
		}
		for _, b := range timeBounds(file) {
			i := slices.IndexFunc(patients(), func(p patient) bool { return p.file == rel && p.test == b.in })
			if i >= 0 {
				found[patients()[i]] = true
				continue
			}
			t.Errorf("%s:%d: %s fails if something takes longer than a bound: call a test of that TestTime…, or wait "+
				"for a condition until a deadline", rel, set.Position(b.pos).Line, b.in)
		}
	})
	if files < 500 {
		t.Errorf("only %d files are found: this test is void", files)
	}
	for _, p := range patients() {
		if !found[p] {
			t.Errorf("%s in %s compares no times any more: take it out of the list", p.test, p.file)
		}
	}
}

// timeBound is a comparison of a measured time with an upper bound, on which a function of a test fails.
type timeBound struct {
	in  string
	pos token.Pos
}

// timeBounds are those of a file, but for functions called TestTime… and those with a simulated clock.
func timeBounds(file *ast.File) (all []timeBound) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || strings.HasPrefix(f.Name.Name, "TestTime") ||
			slices.ContainsFunc(calls(f.Body), func(c *ast.CallExpr) bool { return isCall(c, "synctest", "Test") }) {
			continue
		}
		measured := timesIn(f.Body)
		ast.Inspect(f.Body, func(n ast.Node) bool {
			var conditions []ast.Expr
			var body []ast.Stmt
			switch x := n.(type) {
			case *ast.IfStmt:
				conditions, body = []ast.Expr{x.Cond}, x.Body.List
			case *ast.CaseClause:
				conditions, body = x.List, x.Body
			}
			for _, c := range conditions {
				if pos := upperBound(c, measured); pos.IsValid() && fails(body) {
					all = append(all, timeBound{f.Name.Name, pos})
				}
			}
			return true
		})
	}
	return all
}

// wronglyNamed are the tests whose names begin with TestTime by chance.
func wronglyNamed(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "TestTime") &&
			!strings.HasPrefix(f.Name.Name, "TestTime_") {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

// timesIn are the names of the variables that are given a measured time somewhere in a function.
func timesIn(body ast.Node) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != len(a.Rhs) {
			return true
		}
		for i, e := range a.Rhs {
			if name, ok := a.Lhs[i].(*ast.Ident); ok && isTime(e, nil) {
				names[name.Name] = true
			}
		}
		return true
	})
	return names
}

// upperBound is where a condition asks whether a measured time is above something, if it does.
func upperBound(condition ast.Expr, measured map[string]bool) (pos token.Pos) {
	ast.Inspect(condition, func(n ast.Node) bool {
		if x, ok := n.(*ast.BinaryExpr); ok {
			_, sum := x.Y.(*ast.BinaryExpr) // "not before so long after the measured time"
			switch above := x.Op == token.GTR || x.Op == token.GEQ; {
			case above && isTime(x.X, measured),
				(x.Op == token.LSS || x.Op == token.LEQ) && !sum && isTime(x.Y, measured):
				pos = x.Pos()
			}
		}
		return true
	})
	return pos
}

// isTime says whether a measured time is part of an expression: time.Since, or one of these variables.
func isTime(e ast.Expr, measured map[string]bool) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			found = found || isCall(x, "time", "Since")
		case *ast.Ident:
			found = found || measured[x.Name]
		case *ast.SelectorExpr: // the name of a field is no variable
			found = found || isTime(x.X, measured)
			return false
		}
		return !found
	})
	return found
}

// fails says whether these statements themselves have a test fail.
func fails(body []ast.Stmt) bool {
	return slices.ContainsFunc(body, func(s ast.Stmt) bool {
		e, ok := s.(*ast.ExprStmt)
		if !ok {
			return false
		}
		call, ok := e.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		return ok && slices.Contains([]string{"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"}, f.Sel.Name)
	})
}

func calls(body ast.Node) (all []*ast.CallExpr) {
	ast.Inspect(body, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			all = append(all, c)
		}
		return true
	})
	return all
}

// isCall says whether a call is of this function of this package.
func isCall(c *ast.CallExpr, of, name string) bool {
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != name {
		return false
	}
	pkg, ok := f.X.(*ast.Ident)
	return ok && pkg.Name == of
}

func TestBoundsOfTimeAreFound(t *testing.T) {
	for _, c := range []struct {
		name, test, code string
		want             int
	}{
		{"at once", "TestX", `if time.Since(began) > time.Minute { t.Error() }`, 1},
		{"by a variable", "TestX", `took := time.Since(began); if took >= 5*time.Second { t.Fatalf("") }`, 1},
		{"of the condition", "TestX", `if took := time.Since(began); err != nil || took > x { t.Errorf("") }`, 1},
		{"the other way round", "TestX", `if x < time.Since(began) { h.T.Fatal() }`, 1},
		{"as a number", "TestX", `if time.Since(began).Seconds() > 5 { t.Error() }`, 1},
		{"a case", "TestX", `switch { case time.Since(began) > x: t.Error() }`, 1},
		{"in a helper", "await", `for { if time.Since(began) > x { t.Fatal() } }`, 1},
		{"in a sub-test", "TestX", `t.Run("", func(t *testing.T) { if time.Since(began) > x { t.Fatal() } })`, 1},
		{"a test of times", "TestTime_S1_X", `if time.Since(began) > time.Minute { t.Error() }`, 0},
		{"a simulated clock", "TestX",
			`synctest.Test(t, func(t *testing.T) { if time.Since(began) > x { t.Fatal() } })`, 0},
		{"an instant", "TestX", `began := time.Since(a); if at < began+time.Second { t.Error() }`, 0},
		{"a lower bound", "TestX", `if took := time.Since(began); took < x { t.Error() }`, 0},
		{"once more", "TestX", `for { if time.Since(began) > x { if err != nil { t.Fatal() }; continue } }`, 0},
		{"a deadline", "TestX", `if time.Now().After(deadline) { t.Fatal() }`, 0},
		{"something else", "TestX", `took := time.Since(began); t.Log(took); if n > 5 || a.took > b { t.Fatal() }`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "x_test.go",
				"package x\nfunc "+c.test+"(t *testing.T) {\n"+c.code+"\n}", parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(timeBounds(file)); got != c.want {
				t.Errorf("%s: %d are found, want %d", c.code, got, c.want)
			}
		})
	}
	file, err := parser.ParseFile(token.NewFileSet(), "x_test.go",
		"package x\nfunc TestTimeline(t *T) {}\nfunc TestTime_X(t *T) {}\nfunc Test_X(t *T) {}", 0)
	if err != nil || !slices.Equal(wronglyNamed(file), []string{"TestTimeline"}) {
		t.Errorf("a wrong name is not found: %v", err)
	}
}
