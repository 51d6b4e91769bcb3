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

// passing is a file that may remove and rename without making that durable, and why.
type passing struct{ file, why string }

func passingFiles() []passing {
	const (
		volatile = "what is below the run directory or a pin directory ends with the machine"
		beside   = "a file beside the valid one, which nobody reads after a loss of power"
		pruned   = "a file that its time is over for: one that a loss of power brings back is removed again"
		state    = "it ends with the sync of the state directory itself"
	)
	return []passing{
		{"internal/host/ownfile/ownfile.go", "it makes the others durable"},
		{"internal/agent/state/stage.go", state},
		{"internal/agent/state/state.go", state},
		{"internal/agent/state/history.go", pruned},
		{"internal/agent/portstate/macfiles.go",
			"the state that names the files is saved after them, in the same directory"},
		{"internal/agent/removal/down.go", volatile},
		{"internal/agent/instance/lock.go", volatile},
		{"internal/agent/instance/bpffs.go", volatile},
		{"internal/agent/metrics/listen.go", volatile},
		{"internal/flow/meter/file.go", volatile},
		{"internal/flow/meter/table.go", volatile},
		{"internal/flow/meter/points.go", volatile},
		{"internal/controller/controller.go", volatile},
		{"internal/controller/directory.go", beside},
		{"internal/controller/join.go", state},
		{"internal/controller/restoring.go", "only what a restore that failed has made is removed so"},
		{"internal/platform/audit/series.go", pruned},
		{"internal/platform/snapshots/keeper.go", pruned},
		{"internal/platform/store/snapshot.go", "its callers sync the directory, or make etcd's own data in it"},
		{"internal/controller/cmd/save.go", beside},
		{"internal/controller/trial.go", "it is written to be removed, to find out whether anything can be written"},
	}
}

// What a change removes or renames in a state directory is gone from the disk when it is said to be done: a loss of
// power brings back a removed file, or the old name, where the directory was not synced (ownfile.Remove and Rename do).
func TestNothingIsRemovedUnsynced(t *testing.T) {
	found := map[string]bool{}
	for _, room := range []string{"agent", "controller", "platform", "host", "flow"} {
		err := filepath.WalkDir("../../"+room, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			rel := filepath.ToSlash(strings.Replace(path, "../../", "internal/", 1))
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.SelectorExpr)
				if !ok || !removes(call) {
					return true
				}
				found[rel] = true
				if !slices.ContainsFunc(passingFiles(), func(p passing) bool { return p.file == rel }) {
					t.Errorf("%s:%d: use ownfile.Remove or ownfile.Rename, or say in this test why a loss of power "+
						"may undo it", rel, set.Position(n.Pos()).Line)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range passingFiles() {
		if !found[p.file] {
			t.Errorf("%s removes and renames nothing any more: take it out of this test", p.file)
		}
	}
}

// removes reports whether a function takes a name from a file.
func removes(f *ast.SelectorExpr) bool {
	of, ok := f.X.(*ast.Ident)
	if !ok {
		return false
	}
	switch of.Name {
	case "os":
		return slices.Contains([]string{"Remove", "RemoveAll", "Rename"}, f.Sel.Name)
	case "unix", "syscall":
		return strings.HasPrefix(f.Sel.Name, "Rename") || strings.HasPrefix(f.Sel.Name, "Unlink")
	}
	return false
}
