package layout

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the fields of documents on disk as they are now")

// documents are the packages with types that are written to a state directory, a controller's data directory or store,
// or a user's contexts. Messages in proto are held by buf breaking, and what a user writes, which is in them as well,
// by the list of package slice/fields.
func documents() []string {
	return []string{"agent/adopt", "agent/state", "cli/contexts", "controller", "host/keystore",
		"platform/access", "platform/audit", "platform/pki", "platform/store",
		"uplinks/lacp", "uplinks/lldp", "uplinks/loops", "uplinks/memory", "uplinks/teaming/failover"}
}

// A program reads what the version before wrote, and the version before reads what it writes, when an upgrade is taken
// back: a field on disk keeps its name and its kind for ever. A new one is added to the list by -update.
func TestS83_FieldsOfDocumentsStay(t *testing.T) {
	const list = "testdata/documents.txt"
	var now []string
	for _, dir := range documents() {
		now = append(now, documentFields(t, dir)...)
	}
	if *update {
		if err := os.WriteFile(list, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	before := strings.Split(strings.TrimSpace(string(b)), "\n")
	for _, field := range before {
		if !slices.Contains(now, field) {
			t.Errorf("%s is no more: programs of another version read and write it. Keep it as it is, and add a field",
				field)
		}
	}
	for _, field := range now {
		if !slices.Contains(before, field) {
			t.Errorf("%s is new: go test ./internal/dev/layout -run FieldsOfDocuments -update adds it to %s", field,
				list)
		}
	}
}

// documentFields are the fields of a package that have a name on disk, each as "package type: name kind".
func documentFields(t *testing.T, dir string) (fields []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("internal/%s has no files: %v", dir, err)
	}
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					if name := nameOnDisk(f); name != "" {
						fields = append(fields, fmt.Sprintf("%s %s: %s %s", dir, spec.Name.Name, name,
							kindOf(set, f.Type)))
					}
				}
			}
			return true
		})
	}
	slices.Sort(fields)
	return fields
}

// nameOnDisk is the name of a field in JSON or YAML, "" for a field that is not written by a name.
func nameOnDisk(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	text, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return ""
	}
	for _, key := range []string{"json", "yaml"} {
		name, _, _ := strings.Cut(reflect.StructTag(text).Get(key), ",")
		if name != "" && name != "-" {
			return name
		}
	}
	return ""
}

func kindOf(set *token.FileSet, e ast.Expr) string {
	var b strings.Builder
	if err := printer.Fprint(&b, set, e); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
