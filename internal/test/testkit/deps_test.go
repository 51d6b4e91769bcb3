package testkit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// alwaysThere are programs that every Debian host has (of packages marked Essential: bash, coreutils, dpkg, grep, gzip,
// sed, util-linux; and apt), Go, which the README asks for, and our own.
var alwaysThere = []string{"bash", "sh", "cat", "cp", "tar", "sed", "grep", "echo", "true", "gzip", "dpkg", "dpkg-deb",
	"apt-get", "apt-cache", "unshare", "nsenter", "setpriv",
	"go", "heddle", "heddle-cni"}

// ofDesktops are programs that a desktop has; a command calls one only where there is a desktop, and does without it.
var ofDesktops = []string{"xdg-open"}

// A program that a test or a command calls and `make test` does not install (scripts/deps run test) is missing on a
// fresh machine.
func TestEveryProgramThatIsCalledIsInstalledByDeps(t *testing.T) {
	list, err := exec.Command("../../../scripts/deps", "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	installed := map[string]bool{}
	for _, line := range strings.Split(string(list), "\n") {
		if fields := strings.Fields(line); len(fields) > 0 && (fields[0] == "run" || fields[0] == "test") {
			for _, program := range fields[2:] {
				installed[program] = true
			}
		}
	}
	called := calledPrograms(t, "../../..")
	for program, where := range called {
		if !installed[program] && !slices.Contains(alwaysThere, program) &&
			!slices.Contains(ofDesktops, program) {
			t.Errorf("%s calls %s, which scripts/deps does not install", where, program)
		}
	}
	for _, program := range []string{"ip", "tshark", "bpftool"} {
		if called[program] == "" {
			t.Errorf("no call of %s is found: this test is void", program)
		}
	}
}

// calledPrograms maps each program that the code under root names in a call to the place of one such call.
func calledPrograms(t *testing.T, root string) map[string]string {
	t.Helper()
	called := map[string]string{}
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				for _, program := range programsOf(call) {
					called[program] = set.Position(call.Pos()).String()
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return called
}

// programsOf are the programs that a call names: exec.Command("ip"), exec.LookPath("ip"), testkit.Tool(t, "ip", "nft").
func programsOf(call *ast.CallExpr) []string {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	pkg, ok := f.X.(*ast.Ident)
	if !ok {
		return nil
	}
	var args []ast.Expr
	switch pkg.Name + "." + f.Sel.Name {
	case "exec.Command", "exec.LookPath":
		args = call.Args[:1]
	case "exec.CommandContext":
		args = call.Args[1:2]
	case "testkit.Tool":
		args = call.Args[1:]
	}
	var programs []string
	for _, a := range args {
		literal, ok := a.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		if name, err := strconv.Unquote(literal.Value); err == nil && !strings.Contains(name, "/") {
			programs = append(programs, name)
		}
	}
	return programs
}
