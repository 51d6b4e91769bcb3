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

// documentFields are the fields of a package that have a name on disk, each as "package type: name kind". Those of an
// embedded type of the package are the embedding type's as well: on disk there is no difference.
func documentFields(t *testing.T, dir string) (fields []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("internal/%s has no files: %v", dir, err)
	}
	set, structs := token.NewFileSet(), map[string]*ast.StructType{}
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
				structs[spec.Name.Name] = s
			}
			return true
		})
	}
	for name, s := range structs {
		for _, f := range onDisk(s, structs) {
			fields = append(fields, fmt.Sprintf("%s %s: %s %s", dir, name, nameOnDisk(f), kindOf(set, f.Type)))
		}
	}
	slices.Sort(fields)
	return fields
}

// onDisk are the fields of a struct that have a name on disk, those of embedded types included.
func onDisk(s *ast.StructType, structs map[string]*ast.StructType) (list []*ast.Field) {
	for _, f := range s.Fields.List {
		if nameOnDisk(f) != "" {
			list = append(list, f)
			continue
		}
		if of, is := f.Type.(*ast.Ident); is && len(f.Names) == 0 && structs[of.Name] != nil {
			list = append(list, onDisk(structs[of.Name], structs)...)
		}
	}
	return list
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
