package undone

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"
)

// codes are the constants of this package, read from its source: a new one can't be left out of the test.
func codes(t *testing.T) (all []Code) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "undone.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, v := range spec.Values {
			s, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, Code(s))
		}
		return true
	})
	if len(all) < 11 {
		t.Fatalf("%d codes are found", len(all))
	}
	return all
}

func TestEveryReasonHasATextOfItsOwn(t *testing.T) {
	for name, full := range map[string]Reason{"alone": {}, "with all that belongs to it": {Who: []string{"192.0.2.1",
		"192.0.2.2"}, Device: "eno1", Port: "vmk0", Within: 30 * time.Second, Detail: "no room"}} {
		t.Run(name, func(t *testing.T) {
			texts := map[string]Code{}
			for _, c := range codes(t) {
				r := full
				r.Code = c
				text := r.Text()
				if full.Detail != "" && (c == Failed || c == NobodyToAsk) {
					if text != full.Detail {
						t.Errorf("%s: %q", c, text)
					}
					continue
				}
				if !strings.Contains(text, " ") || strings.HasSuffix(text, ": ") || texts[text] != "" {
					t.Errorf("%s: the text %q is no sentence of its own (%s)", c, text, texts[text])
				}
				texts[text] = c
			}
		})
	}
}

func TestTexts(t *testing.T) {
	again := Reason{Code: ReleaseFailed, Who: []string{"192.0.2.1"}, Device: "eno1", Port: "vmk0",
		Within: 30 * time.Second, Detail: "no room"}
	for want, r := range map[string]Reason{
		"": {}, "of-a-newer-agent": Of("of-a-newer-agent"),
		"it was released; not all went back: no room": {Code: Released, Left: "no room"},
		"it was released; gateway 192.0.2.1 did not answer by device eno1 within 30s, and it could not go to vmk0 " +
			"again: no room": again,
	} {
		if got := r.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if !(Reason{}).None() || again.None() {
		t.Error("none")
	}
}
