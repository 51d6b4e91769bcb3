package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "heddle/api/heddle/agent/v1"
	"heddle/internal/api/wire"
)

// TestTheSchemaHasEveryWord compares the constants of the types in answers with the enums of the schema: an answer with
// a word that its enum lacks would fail as a whole.
func TestTheSchemaHasEveryWord(t *testing.T) {
	for _, c := range []struct{ dir, goType, enum string }{
		{".", "FindingLevel", "FindingLevel"},
		{".", "CaptureStage", "CaptureStage"},
		{".", "ErrorKind", "ErrorKind"},
		{".", "AdoptionState", "AdoptionState"},
		{".", "TrialState", "TrialState"},
		{".", "PortState", "PortState"},
		{".", "Origin", "Origin"},
		{".", "UplinkUse", "UplinkUse"},
		{".", "ChangeKind", "ChangeKind"},
		{".", "EffectKind", "EffectKind"},
		{".", "ObjectKind", "ObjectKind"},
		{".", "TCPFlag", "TcpFlag"},
		{"../plan", "Level", "PolicyLevel"},
		{"../plan", "SegmentKind", "SegmentKind"},
		{"../spec", "Shape", "Shape"},
		{"../spec", "Transport", "Transport"},
		{"../diagnose", "CopyKind", "TraceCopyKind"},
		{"../diagnose", "EditObject", "TraceEditObject"},
		{"../diagnose", "Verdict", "TraceVerdict"},
		{"../diagnose", "KernelSays", "TraceKernel"},
		{"../observe/event", "Kind", "EventKind"},
		{"../observe/event", "FailoverCause", "FailoverCause"},
		{"../host/reach", "Kind", "WitnessKind"},
		{"../plan/problem", "Code", "ProblemCode"},
		{"../observe/undone", "Code", "UndoneCode"},
		{".", "CaptureEnd", "CaptureEnd"},
		{".", "FlowNoteCode", "FlowNoteCode"},
		{"../observe", "ViolationCode", "ViolationCode"},
		{"../observe", "WaitEvidence", "WaitEvidence"},
		{"../observe/accounts", "Fault", "AccountFault"},
		{".", "FlowProblemCode", "FlowProblemCode"},
		{".", "NeighbourOwner", "NeighbourOwner"},
	} {
		t.Run(c.enum, func(t *testing.T) {
			known := texts(t, c.enum)
			words := constants(t, c.dir, c.goType)
			if len(words) == 0 {
				t.Fatalf("no constant of %s is found in %s", c.goType, c.dir)
			}
			for _, w := range words {
				if w != "" && !slices.Contains(known, w) {
					t.Errorf("%q of %s is not in the enum %s, which has %q", w, c.goType, c.enum, known)
				}
			}
		})
	}
}

// texts returns the words of an enum of the schema.
func texts(t *testing.T, name string) (all []string) {
	t.Helper()
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("heddle.agent.v1." + name))
	if err != nil {
		t.Fatal(err)
	}
	values := d.(protoreflect.EnumDescriptor).Values()
	for i := range values.Len() {
		all = append(all, wire.Text(values.Get(i)))
	}
	return all
}

// constants returns the values of the constants that the package in dir declares with that string type.
func constants(t *testing.T, dir, goType string) (all []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != goType {
				return true
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok {
					s, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, s)
				}
			}
			return true
		})
	}
	return all
}
